"""Files and folders that are whole or not there, and files of others that may be damaged."""
