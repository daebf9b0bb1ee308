# Serves rewriting, scoring and feedback on a CPU. docs/install.md says how to build and run it.
FROM python:3.11-slim

RUN useradd --create-home --uid 1000 rewriting
WORKDIR /build
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY rewriting rewriting
COPY rewards rewards
COPY policies policies
COPY recipes recipes
# The constraints pin what was tested. pip reads the argument: name an index that has PyTorch without
# CUDA there, and the image is gigabytes smaller.
ARG PIP_EXTRA_INDEX_URL=""
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve]" && rm -rf /build/*

USER rewriting
WORKDIR /home/rewriting
ENV REWRITING_CACHE=/home/rewriting/models
# The models that the default settings need; a volume there keeps others.
RUN rewriting models fetch
EXPOSE 8080
# The token is the one in REWRITING_TOKEN, or else a new one, which is printed.
CMD ["rewriting", "serve", "--host", "0.0.0.0", "--port", "8080", "--require-token"]
