"""The pages that raters and organisers see: a server, or a sheet to work on without one."""
