import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { documents, makeSeed, type Seed } from '../../lib/nocloud/index.ts'
import { aSeed } from '../lib/nocloud/a-seed.ts'
import { describeWith, run, tryRun } from './tools.ts'

/** What read-seed.py prints. */
type Understood = {
  found: boolean
  instanceId: string
  hostname: string
  network: unknown
  config: Record<string, unknown>
  vendorConfig: string | null
  vendorScripts: Record<string, string>
  userScripts: Record<string, string>
  problems: string[]
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'egress-cloud-init-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes the image, takes it apart with xorriso, and lets cloud-init read the files. */
function understand(seed: Seed): Understood {
  const home = mkdtempSync(join(folder, 'seed-'))
  writeFileSync(join(home, 'seed.iso'), makeSeed(seed))
  run('xorriso', '-osirrox', 'on', '-indev', join(home, 'seed.iso'), '-extract', '/', join(home, 'files'))
  // Debian's own Python: another one first in PATH does not have cloud-init.
  return JSON.parse(run('/usr/bin/python3', join(import.meta.dirname, 'read-seed.py'), join(home, 'files')))
}

function schemaSays(text: string) {
  const file = join(mkdtempSync(join(folder, 'schema-')), 'document')
  writeFileSync(file, text)
  return tryRun('cloud-init', 'schema', '--config-file', file)
}

const publishers = {
  'no user-data': { userData: undefined, config: {}, scripts: [] },
  'a cloud-config with the same keys a vendor would use': {
    userData: `#cloud-config
packages: [htop]
write_files: [{ path: /etc/motd, content: hello }]
runcmd: ['exit 1', [touch, /x]]
bootcmd: [[true]]
locale: de_DE.UTF-8
`,
    config: {
      packages: ['htop'],
      write_files: [{ path: '/etc/motd', content: 'hello' }],
      runcmd: ['exit 1', ['touch', '/x']],
      bootcmd: [[true]],
      locale: 'de_DE.UTF-8',
    },
    scripts: [],
  },
  'a cloud-config that merges in its own way': {
    userData: '#cloud-config\nmerge_how: "dict(replace)+list()+str()"\nruncmd: [[touch, /x]]\n',
    config: { runcmd: [['touch', '/x']] },
    scripts: [],
  },
  'a script': { userData: '#!/bin/sh\necho publisher\n', config: {}, scripts: ['part-001'] },
  'a MIME multipart': {
    userData: [
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary="egress-part"',
      '',
      '--egress-part',
      'Content-Type: text/cloud-config',
      '',
      '#cloud-config',
      'packages: [htop]',
      '--egress-part',
      'Content-Type: text/x-shellscript',
      'Content-Disposition: attachment; filename="egress-proxy"',
      '',
      '#!/bin/sh',
      '--egress-part--',
      '',
    ].join('\n'),
    config: { packages: ['htop'] },
    scripts: ['egress-proxy'],
  },
} satisfies Record<string, { userData: string | undefined; config: object; scripts: string[] }>

describeWith(['cloud-init', 'xorriso'], 'cloud-init', () => {
  it.each(Object.entries(publishers))('takes our proxy and %s', (_name, { userData, config, scripts }) => {
    const seed = aSeed(userData === undefined ? {} : { userData })
    const understood = understand(seed)
    expect(understood).toMatchObject({
      found: true,
      instanceId: seed.instanceId,
      hostname: seed.hostname,
      problems: [],
    })
    expect(understood.config).toMatchObject({ locale: 'false', ...config })
    expect(Object.keys(understood.userScripts)).toEqual(scripts)
    expect(Object.keys(understood.vendorScripts)).toEqual(['egress-proxy'])
    expect(documents(seed)['vendor-data']).toContain(understood.vendorScripts['egress-proxy'])
    expect(understood.vendorScripts['egress-proxy']).toContain('\nAllow 10.0.0.0/8\n')
  })

  it('leaves our part out when the publisher says so', () => {
    const understood = understand(aSeed({ userData: '#cloud-config\nvendor_data: { enabled: false }\n' }))
    expect(understood).toMatchObject({ found: true, vendorConfig: null, vendorScripts: {}, problems: [] })
  })

  it.each(['yes', '0x1f', '1e3', '012', 'null', '2020-01-01'])(
    'reads the host name %s as a string',
    (name) => {
      expect(understand(aSeed({ hostname: name, instanceId: name }))).toMatchObject({
        hostname: name,
        instanceId: name,
        problems: [],
      })
    },
  )

  it('has no complaint about our cloud-configs', () => {
    for (const text of [documents(aSeed())['user-data'], understand(aSeed()).vendorConfig ?? '']) {
      const { status, output } = schemaSays(text)
      expect(output).toMatch(/^Valid cloud-config: \S+\n$/)
      expect(status).toBe(0)
    }
  })

  it('would complain about a wrong one', () => {
    expect(schemaSays('#cloud-config\nruncmd: 7\n').status).not.toBe(0)
  })

  it.each([
    [
      'netplan',
      'etc/netplan/50-cloud-init.yaml',
      /dhcp4: true[\s\S]*macaddress: 02:ab:cd:00:01:02\n\s*set-name: eth0/,
    ],
    [
      'networkd',
      'etc/systemd/network/10-cloud-init-eth0.network',
      /MACAddress=02:ab:cd:00:01:02[\s\S]*DHCP=ipv4/,
    ],
    ['eni', 'etc/network/interfaces.d/50-cloud-init', /auto eth0\niface eth0 inet dhcp\n/],
  ])('renders the network for %s', (renderer, file, wanted) => {
    const home = mkdtempSync(join(folder, 'net-'))
    writeFileSync(join(home, 'network-config'), documents(aSeed())['network-config'])
    const from = ['-p', join(home, 'network-config'), '-k', 'yaml', '-m', 'ens18,02:ab:cd:00:01:02']
    run('cloud-init', 'devel', 'net-convert', ...from, '-d', home, '-D', 'debian', '-O', renderer)
    expect(readFileSync(join(home, file), 'utf8')).toMatch(wanted)
  })
})

describeWith(['cloud-init', 'xorriso', 'install'], 'the script as cloud-init unpacks it', () => {
  /** Runs it with /etc moved and every command that would touch the machine replaced by a witness. */
  function runScript(present: string[], { mirror = true, enabled = true } = {}) {
    const home = mkdtempSync(join(folder, 'script-'))
    const [bin, log] = [join(home, 'bin'), join(home, 'log')]
    mkdirSync(bin)
    for (const name of ['apt-get', 'systemctl', 'chgrp', ...present]) {
      writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@" >>${log}\n`)
      chmodSync(join(bin, name), 0o755)
    }
    for (const name of ['sh', 'install', 'chmod', 'rm']) {
      writeFileSync(join(bin, name), `#!/bin/sh\nPATH=/usr/bin:/bin exec ${name} "$@"\n`)
      chmodSync(join(bin, name), 0o755)
    }
    const script = understand(aSeed()).vendorScripts['egress-proxy'] ?? ''
    const file = join(home, 'script')
    writeFileSync(file, script.replaceAll(/ \/(etc|var)\//g, ` ${home}/$1/`))
    if (!enabled) appendFileSync(join(bin, 'systemctl'), '[ "$1" != is-enabled ]\n')
    if (!mirror) writeFileSync(join(bin, 'apt-get'), '#!/bin/sh\nexit 100\n')
    const { status } = tryRun('/usr/bin/env', `PATH=${bin}`, '/bin/sh', file)
    return {
      status,
      etc: join(home, 'etc'),
      perBoot: join(home, 'var/lib/cloud/scripts/per-boot/egress-proxy'),
      again: () =>
        tryRun(
          '/usr/bin/env',
          `PATH=${bin}`,
          '/bin/sh',
          join(home, 'var/lib/cloud/scripts/per-boot/egress-proxy'),
        ).status,
      calls: existsSync(log) ? readFileSync(log, 'utf8').replaceAll(home, '').trim().split('\n') : [],
    }
  }

  const services = [
    'systemctl start qemu-guest-agent --no-block',
    'chgrp tinyproxy /etc/tinyproxy/tinyproxy.conf',
    'systemctl daemon-reload',
    'systemctl is-enabled --quiet tinyproxy',
    'systemctl restart tinyproxy',
  ]

  it('fetches nothing when agent and proxy are there', () => {
    expect(runScript(['tinyproxy', 'qemu-ga']).calls).toEqual(services)
  })

  it('enables a proxy that is not', () => {
    const { calls } = runScript(['tinyproxy', 'qemu-ga'], { enabled: false })
    expect(calls).toEqual(services.toSpliced(-1, 0, 'systemctl enable tinyproxy'))
  })

  it.each([[[]], [['tinyproxy']], [['qemu-ga']]])('installs both when it finds only %j', (present) => {
    const { calls } = runScript(present)
    expect(calls[0]).toMatch(/^apt-get update /)
    expect(calls[1]).toMatch(/^apt-get install --yes .*confold qemu-guest-agent tinyproxy$/)
    expect(calls.slice(2)).toEqual(services)
  })

  it('is tried again at each boot until it went well, for the eyes of root alone', () => {
    const { status, perBoot, again } = runScript([], { mirror: false })
    expect(status).not.toBe(0)
    expect(statSync(perBoot).mode & 0o777).toBe(0o700)
    expect(again()).not.toBe(0)
    expect(existsSync(perBoot)).toBe(true)
    const well = runScript([])
    expect(well.status).toBe(0)
    expect(existsSync(well.perBoot)).toBe(false)
  })

  it('writes the configuration for root and the proxy alone', () => {
    const { etc } = runScript(['tinyproxy', 'qemu-ga'])
    const file = join(etc, 'tinyproxy/tinyproxy.conf')
    expect(statSync(file).mode & 0o777).toBe(0o640)
    expect(readFileSync(file, 'utf8')).toMatch(/^User tinyproxy\n(.+\n)+Allow 192\.0\.2\.0\/24\n$/)
    expect(readFileSync(join(etc, 'systemd/system/tinyproxy.service.d/egress.conf'), 'utf8')).toContain(
      'LimitNOFILE',
    )
  })
})
