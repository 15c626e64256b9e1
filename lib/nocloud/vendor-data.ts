import { multipart } from './multipart.ts'
import type { Seed } from './seed.ts'
import { tinyproxyConf } from './tinyproxy-conf.ts'
import { cloudConfig } from './yaml-text.ts'

/**
 * Our part of the machine, the guest agent and the proxy. The publisher's user-data is laid over it.
 *
 * A script does the work, no `packages`, `write_files` or `runcmd`: cloud-init merges vendor-data under
 * user-data key by key and never joins their lists (a `merge_how` is used up before that merge), so the
 * first publisher with a `runcmd` of their own would have lost us the proxy. Scripts of vendor-data have a
 * folder of their own, and run once per instance, after the packages and files of user-data and before its
 * scripts and `runcmd`. So whatever a publisher adds is added; what is to change the proxy goes into
 * `runcmd`; and `vendor_data: {enabled: false}` does without all of this.
 *
 * Source: cloud-init documentation, "Vendor-data"; helpers.py, ConfigMerger; issue 6268 of canonical/cloud-init.
 */
export function vendorData(seed: Seed): string {
  return multipart([
    { type: 'cloud-config', filename: 'egress-defaults', text: cloudConfig(defaults) },
    { type: 'x-shellscript', filename: 'egress-proxy', text: setUp(tinyproxyConf(seed)) },
  ])
}

/** The locale module fails where update-locale is missing. A word: the schema of 22.4 wants a string. */
const defaults = { locale: 'false' }

const configuration = '/etc/tinyproxy/tinyproxy.conf'

/** A folder whose scripts cloud-init runs at each boot. Source: cloud-init documentation, "Scripts Per Boot". */
const again = '/var/lib/cloud/scripts/per-boot/egress-proxy'

/** Two descriptors a client: systemd's soft limit of 1024 is met long before MaxClients. */
const serviceDropIn = ['[Service]', 'LimitNOFILE=65536', 'Restart=on-failure', 'RestartSec=3']

/** The `packages` module would fetch the lists even when nothing is missing. confold keeps our file. */
const install = [
  'apt-get update --option Acquire::Retries=3',
  'DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends' +
    ' --option Acquire::Retries=3 --option DPkg::Lock::Timeout=300 --option Dpkg::Options::=--force-confold' +
    ' qemu-guest-agent tinyproxy',
]

function setUp(tinyproxyConf: string[]): string {
  return [
    '#!/bin/sh',
    'set -eu',
    '# cloud-init tries this once for an instance. Until it went well it is tried at each boot, so that a machine whose first',
    '# boot met no package mirror needs no more than the mirror and a restart.',
    `[ "$0" = ${again} ] || install -D -m 0700 "$0" ${again}`,
    '# Before the package is there, so that its service never runs with another configuration.',
    ...file(configuration, '0600', tinyproxyConf),
    ...file('/etc/systemd/system/tinyproxy.service.d/egress.conf', '0644', serviceDropIn),
    'if ! command -v tinyproxy >/dev/null || ! command -v qemu-ga >/dev/null; then',
    ...install,
    'fi',
    '# udev starts it when its port appears, which was before it was installed. Not waited for: without the port it',
    '# would hang.',
    'systemctl start qemu-guest-agent --no-block',
    '# It may hold a password; the group comes with the package, and reads the file on a reload.',
    `chgrp tinyproxy ${configuration}`,
    `chmod 0640 ${configuration}`,
    'systemctl daemon-reload',
    '# Debian enables it; to do so again takes seconds, since it asks its script for System V as well.',
    'systemctl is-enabled --quiet tinyproxy || systemctl enable tinyproxy',
    '# A template that has the package started it with the configuration it came with.',
    'systemctl restart tinyproxy',
    `rm -f ${again}`,
    '',
  ].join('\n')
}

/** A quoted here-document: the shell takes its lines as they are, up to one that is `END`. */
function file(path: string, mode: string, lines: string[]): string[] {
  if (lines.includes('END')) throw new Error(`${path} would end too early`)
  return [`install -D -m ${mode} /dev/stdin ${path} <<'END'`, ...lines, 'END']
}
