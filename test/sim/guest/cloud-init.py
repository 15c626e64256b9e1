"""Reads {"user": ..., "vendor": ...} on standard input and prints the configuration cloud-init itself makes of the two."""
import json
import logging
import sys
import tempfile

from cloudinit import helpers, user_data, util
from cloudinit.handlers.cloud_config import CloudConfigPartHandler

logging.disable(logging.CRITICAL)


def configuration(paths, blob):
    handler = CloudConfigPartHandler(paths)
    handler.handle_part(None, "__begin__", None, None, None, None)
    for part in user_data.UserDataProcessor(paths).process(blob).walk():
        if part.get_content_type() == "text/cloud-config":
            payload = util.fully_decoded_payload(part)
            handler.handle_part(None, "text/cloud-config", part.get_filename(), payload, None, dict(part.items()))
    return handler.cloud_buf


documents = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as folder:
    paths = helpers.Paths({"cloud_dir": folder, "run_dir": folder})
    print(json.dumps([util.mergemanydict([configuration(paths, pair["user"]), configuration(paths, pair["vendor"])]) for pair in documents]))
