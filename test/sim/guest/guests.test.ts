import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { fetch, ProxyAgent } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeSeed } from '../../../lib/nocloud/index.ts'
import { createVirtualClock } from '../../../sim/clock.ts'
import { loopbackAddress } from '../../../sim/guest/address.ts'
import { boot } from '../../../sim/guest/boot.ts'
import { type GuestOptions, inProcessGuests, loopbackGuests } from '../../../sim/guest/guests.ts'
import { createMachine } from '../../../sim/guest/machine.ts'
import type { Guest, GuestSpec } from '../../../sim/types.ts'
import { fixture } from './fixture.ts'

const mac = 'BC:24:11:00:00:01'

function spec(changes: Partial<GuestSpec> = {}): GuestSpec {
  return {
    vmid: 100,
    node: 'pve1',
    name: 'vm',
    mac,
    bridge: 'vmbr0',
    cdroms: [],
    memoryMiB: 512,
    cores: 1,
    disks: [],
    firstBoot: true,
    agentEnabled: true,
    ...changes,
  }
}

/** The seed as the product itself makes it: what it puts on a disc must be enough for a guest that knows nothing of it. */
function productSeed(changes: Partial<Parameters<typeof makeSeed>[0]> = {}): Uint8Array {
  return makeSeed({
    instanceId: 'i-1',
    hostname: 'egress-1',
    mac: mac.toLowerCase(),
    proxy: { port: 3128, allow: ['10.0.0.0/8'] },
    probeFrom: ['127.0.0.0/8'],
    ...changes,
  })
}

function inProcess(options: Partial<GuestOptions> = {}) {
  const clock = createVirtualClock()
  const guests = inProcessGuests({ clock, bootMs: 30_000, cluster: 'test', ...options })
  return { clock, guests, bootUp: () => clock.advance(30_000) }
}

const address = loopbackAddress('test', 100)
const local = { client: '127.0.0.1' }

describe('sim: guests without sockets', () => {
  it('boot for their time, then answer and serve', async () => {
    const { clock, guests } = inProcess()
    const guest = await guests(spec({ cdroms: [productSeed()] }))
    await clock.advance(29_999)
    expect(guest.interfaces()).toBeUndefined()
    expect(guests.probe(address, 3128, local)).toBe('ECONNREFUSED')
    await clock.advance(1)
    expect(guest.interfaces()?.map(({ name }) => name)).toEqual(['lo', 'eth0'])
    expect(guests.probe(address, 3128, local)).toMatchObject({ status: 200 })
    expect(guests.probe(address, 3128, { client: '192.0.2.1' })).toMatchObject({ status: 403 })
    await guest.close()
    expect(guest.interfaces()).toBeUndefined()
    expect(guests.probe(address, 3128, local)).toBe('ECONNREFUSED')
  })

  it('whose first boot met no package mirror are set up at the first that does', async () => {
    let isThere = false
    const { guests, bootUp } = inProcess({ hasMirror: () => isThere })
    const first = await guests(spec({ cdroms: [productSeed()] }))
    await bootUp()
    expect(first.interfaces()).toBeUndefined()
    expect(guests.console(100)).toContain('E: Unable to locate package qemu-guest-agent')
    await first.close()
    isThere = true
    const second = await guests(spec({ cdroms: [productSeed()], firstBoot: false }))
    await bootUp()
    expect(second.interfaces()).toBeDefined()
    expect(guests.probe(address, 3128, local)).toMatchObject({ status: 200 })
    await second.close()
    const lines = guests.console(100).length
    await guests(spec({ cdroms: [productSeed()], firstBoot: false }))
    await bootUp()
    expect(guests.console(100).slice(lines).join()).not.toContain('Unable')
    expect(guests.probe(address, 3128, local)).toMatchObject({ status: 200 })
  })

  it('never come up when they are switched off before', async () => {
    const { guests, bootUp } = inProcess()
    const guest = await guests(spec({ cdroms: [productSeed()] }))
    await guest.close()
    await bootUp()
    expect(guests.probe(address, 3128, local)).toBe('ECONNREFUSED')
    expect(guests.console(100)).toEqual([`power on: vm, 512 MiB, card ${mac} on vmbr0`])
  })

  it('list their interfaces as the agent does', async () => {
    const { guests, bootUp } = inProcess({ hasDocker: true })
    const guest = await guests(spec({ cdroms: [productSeed()] }))
    await bootUp()
    expect(guest.interfaces()?.map(({ statistics: _, ...rest }) => rest)).toEqual([
      {
        name: 'lo',
        'hardware-address': '00:00:00:00:00:00',
        'ip-addresses': [
          { 'ip-address': '127.0.0.1', 'ip-address-type': 'ipv4', prefix: 8 },
          { 'ip-address': '::1', 'ip-address-type': 'ipv6', prefix: 128 },
        ],
      },
      {
        name: 'docker0',
        'hardware-address': '02:42:ac:11:00:01',
        'ip-addresses': [{ 'ip-address': '172.17.0.1', 'ip-address-type': 'ipv4', prefix: 16 }],
      },
      {
        name: 'eth0',
        'hardware-address': 'bc:24:11:00:00:01',
        'ip-addresses': [
          { 'ip-address': address, 'ip-address-type': 'ipv4', prefix: 8 },
          { 'ip-address': 'fe80::be24:11ff:fe00:1', 'ip-address-type': 'ipv6', prefix: 64 },
        ],
      },
    ])
  })

  it('have neither agent nor proxy without a seed', async () => {
    for (const [name, note] of [
      [undefined, 'cloud-init: no NoCloud seed found'],
      ['other-label', 'cloud-init: no NoCloud seed found'],
      ['plain', 'cloud-init: device /dev/sr0 with label=cidata not a valid seed.'],
      ['no-meta-data', 'cloud-init: device /dev/sr0 with label=cidata not a valid seed.'],
    ] as const) {
      const { guests, bootUp } = inProcess()
      const guest = await guests(spec({ cdroms: name ? [fixture(name)] : [] }))
      await bootUp()
      expect(guest.interfaces()).toBeUndefined()
      expect(guests.probe(address, 8888, local)).toBe('ECONNREFUSED')
      expect(guests.console(100)).toContain(note)
    }
  })

  it('take the seed from any drive, junk beside it or not', async () => {
    const { guests, bootUp } = inProcess()
    await guests(spec({ cdroms: [fixture('rock-joliet'), Buffer.from('junk'), fixture('other-label')] }))
    await bootUp()
    expect(guests.console(100)).toContain('cloud-init: using NoCloud data from /dev/sr0')
    expect(guests.probe(address, 8888, local)).toMatchObject({ status: 200 })
  })

  it('start no agent in a VM that has no port for it', async () => {
    const { guests, bootUp } = inProcess()
    const guest = await guests(spec({ cdroms: [fixture('rock-joliet')], agentEnabled: false }))
    await bootUp()
    expect(guest.interfaces()).toBeUndefined()
    expect(guests.probe(address, 8888, local)).toMatchObject({ status: 200 })
  })

  it('do what a template brings without being asked, the agent too', async () => {
    const { guests, bootUp } = inProcess({ preinstalled: ['tinyproxy', 'qemu-guest-agent'] })
    const guest = await guests(spec())
    await bootUp()
    expect(guest.interfaces()).toHaveLength(2)
    expect(guests.probe(address, 8888, local)).toMatchObject({ status: 200 })
  })

  it('are set up once for each instance-id, and keep what they have on later boots', async () => {
    const { guests, bootUp } = inProcess()
    const life = async (cdroms: Uint8Array[], firstBoot: boolean) => {
      const guest = await guests(spec({ cdroms, firstBoot }))
      await bootUp()
      const seen = [3128, 3129].map((port) => guests.probe(address, port, local) !== 'ECONNREFUSED')
      const answers = guest.interfaces() !== undefined
      await guest.close()
      return { seen, answers }
    }
    const other = { proxy: { port: 3129, allow: ['10.0.0.0/8'] } }
    expect(await life([productSeed()], true)).toEqual({ seen: [true, false], answers: true })
    expect(await life([productSeed(other)], false)).toEqual({ seen: [true, false], answers: true })
    expect(guests.console(100)).toContain('cloud-init: instance-id i-1, not new: nothing to set up')
    expect(await life([], false)).toEqual({ seen: [true, false], answers: true })
    expect(await life([productSeed({ instanceId: 'i-2', ...other })], false)).toEqual({
      seen: [false, true],
      answers: true,
    })
    expect(await life([], true)).toEqual({ seen: [false, false], answers: false })
  })

  it('set themselves up again when their disk is forgotten, as after a restart of the simulator', async () => {
    const { guests, bootUp } = inProcess()
    await guests(spec({ cdroms: [productSeed()], firstBoot: false }))
    await bootUp()
    expect(guests.probe(address, 3128, local)).toMatchObject({ status: 200 })
  })

  it.each([
    [
      'a proxy that listens inside only',
      'Port 3128\nListen 127.0.0.1\n',
      'tinyproxy: cannot be reached: it listens on 127.0.0.1 only',
    ],
    [
      'an address the machine does not have',
      'Port 3128\nListen 10.9.9.9\n',
      'tinyproxy: cannot be reached: could not create listening sockets: this machine has no address 10.9.9.9',
    ],
    ['a configuration that is refused', 'Port 3128\nnonsense\n', 'tinyproxy: ERROR: Syntax error on line 2'],
  ])('show on their console: %s', async (_, conf, line) => {
    const { guests, bootUp } = inProcess()
    const write = `printf '${conf.replaceAll('\n', '\\n')}' > /etc/tinyproxy/tinyproxy.conf`
    const userData = `#cloud-config\n${JSON.stringify({ runcmd: [write, 'systemctl restart tinyproxy'] })}\n`
    await guests(spec({ cdroms: [productSeed({ userData })] }))
    await bootUp()
    expect(guests.console(100)).toContain(line)
    expect(guests.probe(address, 3128, local)).toBe('ECONNREFUSED')
  })

  it('stay unreachable when their network-config is for another card', async () => {
    const { guests, bootUp } = inProcess()
    const guest = await guests(spec({ cdroms: [productSeed({ mac: 'bc:24:11:00:00:02' })] }))
    await bootUp()
    expect(
      guest
        .interfaces()
        ?.at(-1)
        ?.['ip-addresses']?.map((entry) => entry['ip-address-type']),
    ).toEqual(['ipv6'])
    expect(guests.console(100)).toContain('tinyproxy: cannot be reached: the card is down')
  })

  it('write files as they are told', () => {
    const files = [
      { path: '/plain', content: 'a\n' },
      { path: '/plain', content: 'b\n', append: true, permissions: '0600' },
      { path: '/b64', content: Buffer.from('c\n').toString('base64'), encoding: 'base64' },
      { path: '/gz', content: gzipSync('d\n').toString('base64'), encoding: 'gz+b64' },
      { path: '/late', content: 'e\n', defer: true },
      { path: '/broken', content: 'x', encoding: 'gzip' },
      { content: 'no path' },
    ]
    const userData = `#cloud-config\n${JSON.stringify({ write_files: files, bootcmd: ['cp /plain /early; cp /late /early'] })}\n`
    const machine = createMachine()
    const log: string[] = []
    boot(machine, {
      discs: [productSeed({ userData })],
      mac,
      hasAgentPort: true,
      log: (line) => log.push(line),
    })
    const written = ['/plain', '/b64', '/gz', '/late', '/early', '/broken'].map(
      (path) => machine.files.get(path)?.text,
    )
    expect(written).toEqual(['a\nb\n', 'c\n', 'd\n', 'e\n', undefined, undefined])
    expect([machine.files.get('/plain')?.mode, machine.files.get('/late')?.mode]).toEqual([0o600, 0o644])
    expect(log).toContain('cloud-init: write_files: the content of /broken is not gzip')
    expect(log).toContain('cloud-init: write_files: an entry has no path, skipped')
  })

  it('do the work of each stage in its order: boot, files, packages, late files, the vendor, the user', () => {
    const say = (word: string) => `echo ${word} >> /order`
    const userData = `#cloud-config\n${JSON.stringify({
      bootcmd: [say('boot')],
      runcmd: [say('run'), ['sh-is-not-asked', "it's"], null],
      packages: [['squid', '5.7-2'], 'jq'],
    })}\n`
    const machine = createMachine()
    const log: string[] = []
    const system = boot(machine, {
      discs: [productSeed({ userData })],
      mac,
      hasAgentPort: true,
      log: (line) => log.push(line),
    })
    const steps = [
      'apt: installed squid',
      'apt: installed jq',
      'apt: installed tinyproxy',
      "not carried out by the simulator: sh-is-not-asked it's",
    ]
    expect(log.filter((line) => steps.includes(line))).toEqual(steps)
    expect(machine.files.get('/order')?.text).toBe('boot\nrun\n')
    expect([...system.running.keys()].sort()).toEqual(['qemu-guest-agent', 'squid'])
    // Both want port 3128, and squid was there first.
    expect(log).toContain('tinyproxy: bind: Address already in use (port 3128)')
  })

  it('live by the thousand', async () => {
    const { guests, bootUp } = inProcess({ bootMs: 30_000 })
    const image = productSeed()
    const many: Guest[] = []
    for (let vmid = 1000; vmid < 2000; vmid += 1) many.push(await guests(spec({ vmid, cdroms: [image] })))
    await bootUp()
    const serving = many.filter((guest) => {
      const found = guest.interfaces()?.at(-1)?.['ip-addresses']?.[0]?.['ip-address'] ?? ''
      return guests.probe(found, 3128, local) !== 'ECONNREFUSED'
    })
    expect(serving).toHaveLength(1000)
    expect(
      new Set(many.map((guest) => guest.interfaces()?.at(-1)?.['ip-addresses']?.[0]?.['ip-address'])).size,
    ).toBe(1000)
  })
})

describe('sim: guests with real proxies', () => {
  const site = createServer((request, response) => response.end(`page ${request.url}`))
  const opened: { close(): Promise<unknown> }[] = []
  let page: string
  beforeAll(async () => {
    site.listen(0, '127.0.0.1')
    await once(site, 'listening')
    const where = site.address()
    page = `http://127.0.0.1:${typeof where === 'object' ? where?.port : ''}/x`
  })
  afterEach(async () => {
    for (const thing of opened.splice(0)) await thing.close()
  })
  afterAll(() => site.close())

  async function start(image: Uint8Array) {
    const clock = createVirtualClock()
    const guests = loopbackGuests({ clock, bootMs: 1000, cluster: `test-${process.pid}` })
    const guest = await guests(spec({ cdroms: [image] }))
    opened.push(guest)
    await clock.advance(1000)
    const found = guest.interfaces()?.at(-1)?.['ip-addresses']?.[0]?.['ip-address'] ?? ''
    return { guests, guest, found }
  }

  async function through(proxy: string, proxyTunnel: boolean) {
    const dispatcher = new ProxyAgent({ uri: proxy, proxyTunnel })
    opened.push(dispatcher)
    const response = await fetch(page, { dispatcher })
    return [response.status, await response.text()]
  }

  it('fetch pages, plainly and through tunnels', async () => {
    const { guests, found, guest } = await start(productSeed())
    await expect.poll(() => guests.console(100).at(-1)).toBe(`tinyproxy: listening on ${found}:3128`)
    expect(await through(`http://${found}:3128`, false)).toEqual([200, 'page /x'])
    expect(await through(`http://${found}:3128`, true)).toEqual([200, 'page /x'])
    await guest.close()
    await expect(through(`http://${found}:3128`, false)).rejects.toMatchObject({
      cause: { code: 'ECONNREFUSED' },
    })
  })

  it('ask for credentials, and know right from wrong', async () => {
    const auth = { username: 'u', password: 'p' }
    const { guests, found } = await start(productSeed({ proxy: { port: 3128, allow: ['10.0.0.0/8'], auth } }))
    await expect.poll(() => guests.console(100).at(-1)).toContain('listening')
    expect(await through(`http://u:p@${found}:3128`, true)).toEqual([200, 'page /x'])
    expect((await through(`http://u:wrong@${found}:3128`, false))[0]).toBe(401)
    await expect(through(`http://${found}:3128`, false)).rejects.toMatchObject({ cause: { message: /407/ } })
  })

  it('turn away whom they do not know', async () => {
    const { guests, found } = await start(productSeed({ probeFrom: ['192.0.2.1'] }))
    await expect.poll(() => guests.console(100).at(-1)).toContain('listening')
    expect((await through(`http://${found}:3128`, false))[0]).toBe(403)
  })

  it('go without a proxy when its port is taken', async () => {
    const taken = createTcpServer()
    taken.listen(3128, loopbackAddress(`test-${process.pid}`, 100))
    await once(taken, 'listening')
    const { guests, guest } = await start(productSeed())
    await expect.poll(() => guests.console(100).at(-1)).toContain('tinyproxy: not started: listen EADDRINUSE')
    expect(guest.interfaces()).toHaveLength(2)
    taken.close()
  })
})
