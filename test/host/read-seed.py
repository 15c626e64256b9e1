"""Hands a seed directory to cloud-init's own code, as far as data goes, and prints what it understood.

Runs nothing of the seed and leaves the machine alone: cloud-init's state goes into a temporary directory.
Usage: /usr/bin/python3 read-seed.py SEED_DIRECTORY
"""

import json
import logging
import os
import sys
import tempfile

from cloudinit import dmi, helpers, sources, stages, util

problems = []


class Collect(logging.Handler):
    def emit(self, record):
        problems.append(record.getMessage())


logging.getLogger().addHandler(Collect(level=logging.WARNING))
# Neither this machine's discs nor its kernel command line nor its firmware may lend the seed anything.
util.find_devs_with = lambda *_args, **_kwargs: []
util.get_cmdline = lambda: ""
dmi.read_dmi_data = lambda _key: None


def files(folder):
    if not os.path.isdir(folder):
        return {}
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return {os.path.basename(path): text(path) for path in paths if os.path.isfile(path)}


def text(path):
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return file.read()


def understand(home, seed):
    paths = {"cloud_dir": os.path.join(home, "cloud"), "run_dir": os.path.join(home, "run")}
    os.makedirs(os.path.join(paths["cloud_dir"], "seed"))
    os.makedirs(paths["run_dir"])
    os.symlink(os.path.abspath(seed), os.path.join(paths["cloud_dir"], "seed", "nocloud"))
    # Read whenever cloud-init reads its configuration anew, and stronger than /etc/cloud.
    os.environ["CLOUD_CFG"] = os.path.join(home, "cloud.cfg")
    with open(os.environ["CLOUD_CFG"], "w") as file:
        json.dump({"datasource_list": ["NoCloud"], "system_info": {"paths": paths}}, file)

    init = stages.Init(ds_deps=[sources.DEP_FILESYSTEM])
    init.read_cfg()
    try:
        source = init.fetch()
    except sources.DataSourceNotFoundException:
        return {"found": False}
    init.instancify()
    init.update()
    init.consume_data()
    # Init merges from /var/lib/cloud whatever its paths say; the same class, told where to look.
    config = helpers.ConfigMerger(paths=init.paths, datasource=source, base_cfg=init.cfg).cfg
    return {
        "found": True,
        "instanceId": source.get_instance_id(),
        "hostname": source.metadata["local-hostname"],
        "network": source.network_config,
        "config": config,
        "vendorConfig": text(init.paths.get_ipath_cur("vendor_cloud_config")),
        "vendorScripts": files(init.paths.get_ipath_cur("vendor_scripts")),
        "userScripts": files(init.paths.get_ipath_cur("scripts")),
    }


with tempfile.TemporaryDirectory() as home:
    answer = understand(home, sys.argv[1])
print(json.dumps({**answer, "problems": problems}))
