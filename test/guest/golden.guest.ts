import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { usableAddresses } from '../../lib/pick-address.ts'
import { servePage } from '../../local/page-server.ts'
import type { GuestSpec } from '../../sim/index.ts'
import type { Machine } from '../../sim/qemu/machine.ts'
import { type Bench, openBench } from './booted.ts'
import { otherLabel, withoutMetaData } from './discs.ts'
import { cloudInitEnd, inside, tryInside } from './inside.ts'
import { host, openRealLife, type RealLife, until } from './real-life.ts'
import { fetched, tunnelled } from './through.ts'

// As long as tinyproxy takes them: 255 characters together.
const username = 'team-a'
const password = 'Aa0._-'.repeat(41) + 'xyz'
const address = '127.91.7.1'
const proxy = `http://${address}:3128`

const userData = `#cloud-config
write_files:
  - path: /etc/ours
    content: "written\\n"
runcmd:
  - [sh, -c, 'systemctl is-active tinyproxy >> /etc/ours']
`
/** Somebody else on the proxy's port, over IPv4, who takes connections and says nothing. */
const squatter = `#cloud-config
bootcmd:
  - - sh
    - -c
    - 'setsid python3 -c "import socket, time; s = socket.create_server((str(), 8080)); time.sleep(86400)" > /dev/null 2>&1 &'
`

let bench: Bench
let life: RealLife
let page: Awaited<ReturnType<typeof servePage>>
let spec: GuestSpec
let disk: string
let machine: Machine
const url = () => `http://${host}:${page.port}/`

beforeAll(async () => {
  bench = await openBench()
  page = await servePage({ port: 0 })
  life = await openRealLife({ passwords: { 'team/a': password }, page: page.port })
  spec = await life.untilPowerOn({
    spec: {
      userData,
      proxy: { port: 3128, allow: ['192.0.2.0/24'], auth: { username, passwordParameter: 'team/a' } },
    },
  })
  disk = bench.disk('golden')
  machine = await bench.boot(spec, disk)
  await machine.forward(address, 3128)
})
afterEach(({ task }) => {
  if (task.result?.state === 'fail') console.error(bench.consoles())
})
afterAll(async () => {
  await bench?.close()
  await page?.close()
  await life?.lab.close()
})

describe('a machine from a template that has agent and proxy', () => {
  it('ends cloud-init as done, without an error or a warning', async () => {
    expect(await cloudInitEnd(machine)).toEqual({ status: 'done', errors: [], complaints: '' })
    expect(await inside(machine, 'cloud-init schema --system')).toContain('Valid cloud-config')
  })

  it('bears the host name and the instance id of its request', async () => {
    expect((await inside(machine, 'hostname')).trim()).toBe(spec.name)
    expect((await inside(machine, 'cat /var/lib/cloud/data/instance-id')).trim()).toBe('alpha-g1')
  })

  it('has a file system as large as its disk', async () => {
    expect(Number(await inside(machine, 'df --output=size --block-size=1M / | tail -1'))).toBeGreaterThan(
      3700,
    )
  })

  it('is found at the address its agent tells, and nowhere else', async () => {
    const row = await life.readAddress(machine, address)
    expect(row).toMatchObject({ step: 'verify', address, endpoint: proxy })
    const answer = await machine.agent.ask('guest-network-get-interfaces')
    const told = (answer && 'return' in answer ? answer.return : []) as {
      'hardware-address'?: string
      'ip-addresses'?: { 'ip-address': string }[]
    }[]
    const interfaces = told.map((one) => ({
      mac: one['hardware-address'] ?? '',
      addresses: (one['ip-addresses'] ?? []).map((entry) => ({ address: entry['ip-address'] })),
    }))
    expect(usableAddresses(interfaces, spec.mac.toLowerCase(), { ipv6: true })).toEqual(['10.0.2.15'])
  })

  it('is Ready once its proxy answers us', async () => {
    expect(await life.verified('answers')).toMatchObject({ phase: 'Ready', endpoint: proxy })
  })

  it.each([
    ['a request', fetched],
    ['a tunnel', tunnelled],
  ])('asks for the password of %s', async (_, through) => {
    expect((await through({ proxy, url: url() })).status).toBe(407)
    expect((await through({ proxy, url: url(), credentials: `${username}:wrong` })).status).toBe(401)
    const page = await through({ proxy, url: url(), credentials: `${username}:${password}` })
    expect(page).toEqual({ status: 200, body: expect.stringContaining('hello from egress') })
  })

  it('refuses whoever its request does not allow, password or not', async () => {
    // Its own loopback address is in no range of the request; that of its host is, as the prober's.
    const line = `GET ${url()} HTTP/1.0\\r\\nProxy-Authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}\\r\\n\\r\\n`
    const asked = `python3 -c 'import socket; s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"${line}"); print(s.recv(99))'`
    expect(await inside(machine, asked)).toContain(' 403 ')
  })

  it('has what its publisher added, before and after our part', async () => {
    // runcmd came when the proxy was up.
    expect(await inside(machine, 'cat /etc/ours')).toBe('written\nactive\n')
  })

  it('serves again after it was stopped and started, and sets up nothing twice', async () => {
    await machine.shutDown()
    await machine.ended
    machine = await bench.boot(spec, disk)
    await machine.forward(address, 3128)
    await until('the proxy answers', async () => {
      const credentials = `${username}:${password}`
      return (await fetched({ proxy, url: url(), credentials }).catch(() => undefined))?.status === 200
    })
    expect(await cloudInitEnd(machine)).toEqual({ status: 'done', errors: [], complaints: '' })
    expect(await inside(machine, 'cat /etc/ours')).toBe('written\nactive\n')
  })
})

describe('the seed of another generation', () => {
  beforeAll(async () => {
    await machine.shutDown()
    await machine.ended
    spec = await life.untilPowerOn({ generation: 2, spec: { userData: squatter, proxy: { port: 8080 } } })
    machine = await bench.boot(spec, disk)
    await machine.forward(address, 8080)
  })

  it('makes cloud-init run anew', async () => {
    await cloudInitEnd(machine)
    expect((await inside(machine, 'cat /var/lib/cloud/data/instance-id')).trim()).toBe('alpha-g2')
    expect(await inside(machine, 'cat /etc/tinyproxy/tinyproxy.conf')).toMatch(/^Port 8080$/m)
    expect((await tryInside(machine, 'grep BasicAuth /etc/tinyproxy/tinyproxy.conf')).output).toBe('')
  })

  it('whose port is taken ends as ProxyNeverAnswered, and where its hint says stands why', async () => {
    await life.readAddress(machine, address)
    expect(await life.verified('silent')).toMatchObject({
      phase: 'Failed',
      problem: { code: 'ProxyNeverAnswered', hint: expect.stringContaining('`journalctl -u tinyproxy`') },
    })
    // tinyproxy is content with IPv6 alone, so cloud-init has nothing to complain of.
    expect((await cloudInitEnd(machine)).status).toBe('done')
    expect(await inside(machine, 'journalctl -u tinyproxy')).toContain('bind failed: Address already in use')
  })
})

describe('a disc that is no seed', () => {
  const instanceOf = async (disc: Uint8Array) => {
    await machine.insert(disc)
    await tryInside(machine, 'cloud-init clean; cloud-init init --local')
    return (await tryInside(machine, 'cat /var/lib/cloud/data/instance-id')).output.trim()
  }

  it('is told from one that is', async () => {
    const [seed = new Uint8Array()] = spec.cdroms
    expect(await instanceOf(otherLabel(seed))).not.toContain('alpha-g2')
    expect(await instanceOf(withoutMetaData(seed))).not.toContain('alpha-g2')
    expect(await instanceOf(seed)).toBe('alpha-g2')
  })
})
