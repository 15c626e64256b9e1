import type { Seed } from './seed.ts'
import { tinyproxyConf } from './tinyproxy-conf.ts'
import { cloudConfig, lines } from './yaml-text.ts'

/**
 * Our part of the machine: the guest agent and the proxy. The publisher's user-data is laid over it.
 *
 * cloud-init merges vendor-data *into* user-data: a key of the publisher's stays, ours fills the gaps. By
 * default that would drop our `write_files` and `runcmd` as soon as the publisher has one. `merge_how` in
 * the document that is merged in decides otherwise: lists are joined, ours first. First, so that the
 * publisher's files replace ours of the same path, and nothing in the publisher's `runcmd` (an `exit`, an
 * endless command) keeps the proxy from starting. A publisher's `#!` script is run before any `runcmd`.
 * With `vendor_data: {enabled: false}` a publisher does without all of this.
 *
 * Source: cloud-init documentation, "Merging user-data sections" and "Vendor-data".
 */
export function vendorData(seed: Seed): string {
  return cloudConfig({
    merge_how: [
      { name: 'list', settings: ['prepend'] },
      { name: 'dict', settings: ['no_replace', 'recurse_list'] },
    ],
    // The module fails on small images without update-locale. A word, for 22.4's schema wants a string.
    locale: 'false',
    write_files: [
      // Written before the package can be there, so that its service never runs with another configuration;
      // root's alone until the package has made the group.
      { path: conf, permissions: '0600', content: lines(tinyproxyConf(seed)) },
      { path: '/etc/systemd/system/tinyproxy.service.d/egress.conf', content: lines(serviceDropIn) },
    ],
    runcmd: [
      installWhenMissing,
      ['chgrp', 'tinyproxy', conf],
      ['chmod', '0640', conf],
      ['systemctl', 'daemon-reload'],
      ['systemctl', 'enable', 'tinyproxy'],
      // In a template that has the package, the service may have started before our file was written.
      ['systemctl', 'restart', 'tinyproxy'],
      // A static unit that udev starts when the port appears, which was before it was installed.
      ['systemctl', 'start', 'qemu-guest-agent'],
    ],
  })
}

const conf = '/etc/tinyproxy/tinyproxy.conf'

/** Two descriptors a client: systemd's soft limit of 1024 is met long before MaxClients. */
const serviceDropIn = `[Service]
LimitNOFILE=65536
Restart=on-failure
RestartSec=3
`

/**
 * The `packages` module would fetch the package lists even when nothing is missing. confold: dpkg keeps the
 * configuration that we have already written.
 */
const installWhenMissing = [
  'command -v tinyproxy >/dev/null && command -v qemu-ga >/dev/null ||',
  '{ apt-get update -o Acquire::Retries=3;',
  'DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends',
  '-o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold',
  'qemu-guest-agent tinyproxy; }',
].join(' ')
