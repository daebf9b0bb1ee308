"""A server on a port of this machine, in a thread of its own."""

import asyncio
import socket
import threading
import time
from typing import Any

import uvicorn


class Listening:
    """Listens once it is started; settings: of uvicorn."""

    def __init__(self, settings: Any) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.server = uvicorn.Server(settings)
        serving = self.server.serve(sockets=[self.listener])
        self.thread = threading.Thread(target=asyncio.run, args=(serving,))

    def start(self) -> None:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()
