import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import * as fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { afterEach, describe, expect, it } from 'vitest'
import { pickAddress } from '../../lib/pick-address.ts'
import { probe } from '../../lib/probe.ts'
import { type Lab, openLab, settled } from '../lab/lab.ts'
import { fakeCluster, ok, rejection } from '../lib/proxmox/fake-exchange.ts'
import { mutated } from './mutations.ts'

const mac = '02:00:00:00:00:0a'
const card = (address: string, of = mac) => ({
  name: 'eth0',
  'hardware-address': of,
  'ip-addresses': [
    { 'ip-address': address, 'ip-address-type': address.includes(':') ? 'ipv6' : 'ipv4', prefix: 24 },
  ],
})
const wanted = {
  ipv6: true,
  endpoints: [
    { url: 'https://10.0.0.1:8006' },
    { url: 'https://[fd00::1]:8006' },
    { url: 'https://pve1:8006' },
  ],
}

const listed = (result: unknown) => {
  const { provider } = fakeCluster(() => ok({ result }))
  return provider.interfaces({ node: 'pve1', vmid: 101 })
}

describe('what a guest says of its network, whatever it is,', () => {
  it('is an address of the card with our MAC, or none', async () => {
    const honest = [
      { name: 'lo', 'hardware-address': '00:00:00:00:00:00', 'ip-addresses': [] },
      card('10.0.0.5'),
      card('fe80::1'),
      card('10.9.9.9', '02:00:00:00:00:0b'),
    ]
    const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string({ unit: 'binary', maxLength: 20 }))
    const cards = fc.oneof(
      mutated(honest),
      fc.array(
        fc
          .tuple(address, fc.constantFrom(mac, mac.toUpperCase(), '02:00:00:00:00:0b', ''))
          .map(([of, at]) => card(of, at)),
      ),
    )
    await fc.assert(
      fc.asyncProperty(cards, async (result) => {
        const told = await listed(result).catch((error: unknown) => {
          expect(error).toMatchObject({ name: 'ProxmoxError' })
          return []
        })
        const picked = pickAddress(told, mac, wanted)
        if (picked === undefined) return
        expect(picked).toMatch(/^[0-9a-f.:]+$/i)
        const ours = told.filter((one) => one.mac === mac).flatMap(({ addresses }) => addresses)
        const spelt = ours.flatMap(({ address }) =>
          ipaddr.isValid(address) ? [ipaddr.parse(address).toString()] : [],
        )
        expect(spelt).toContain(picked)
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback', '127.8.8.8'],
    ['loopback', '::1'],
    ['loopback, written as IPv6', '::ffff:127.0.0.1'],
    ['loopback, written as IPv6', '::ffff:7f00:1'],
    ['loopback, behind a translation', '64:ff9b::7f00:1'],
    ['loopback, behind a tunnel', '2002:7f00:1::'],
    ['loopback, in the manner of old', '::127.0.0.1'],
    ['what a cloud tells its machines', '169.254.169.254'],
    ['what a cloud tells its machines, written as IPv6', '::ffff:a9fe:a9fe'],
    ['many at once', '224.0.0.1'],
    ['many at once', 'ff02::1'],
    ['everybody', '255.255.255.255'],
    ['nobody', '0.0.0.0'],
    ['nobody', '::'],
    ['a door of the cluster', '10.0.0.1'],
    ['a door of the cluster', 'fd00:0:0::1'],
    ['a number', '167772165'],
    ['an octal', '010.0.0.5'],
    ['a zone', '2a00::5%eth0'],
    ['a zone that is a header', '2a00::5%x\r\nHost: y'],
    ['a name', 'localhost'],
    ['a place in a URL', '10.0.0.5/../'],
    ['a host and more', '10.0.0.5:22'],
  ])('leads nobody to %s: %s', async (_, address) => {
    expect(pickAddress(await listed([card(address)]), mac, wanted)).toBeUndefined()
  })

  it('leads nobody to loopback by a wide range in the configuration', async () => {
    const everywhere = { ...wanted, addressRanges: ['::/0', '10.0.0.0/8'] }
    expect(pickAddress(await listed([card('::ffff:127.0.0.1')]), mac, everywhere)).toBeUndefined()
    expect(pickAddress(await listed([card('10.0.0.1')]), mac, everywhere)).toBeUndefined()
    expect(pickAddress(await listed([card('10.0.0.2')]), mac, everywhere)).toBe('10.0.0.2')
  })

  it('is looked at so far and no farther', async () => {
    const many = Array.from({ length: 10_000 }, () => card('10.0.0.5'))
    expect(await listed(many)).toHaveLength(64)
  })

  it('is not repeated: its own words may be anything, the password of its proxy too', async () => {
    for (const error of [
      { class: 'hunter2', desc: 'hunter2\u001b[2J' },
      { class: 'GenericError', desc: 'The command hunter2 has not been found' },
      { desc: `The command guest-network-get-interfaces has been disabled: hunter2 ${'x'.repeat(1e5)}` },
    ]) {
      const thrown = await rejection(listed({ error }))
      expect(thrown).toMatchObject({ code: 'AgentError' })
      expect(JSON.stringify([String(thrown), thrown])).not.toContain('hunter2')
    }
  })
})

describe('a hostile guest in a life cycle', () => {
  let lab: Lab
  afterEach(() => lab?.close())

  const says = (data: unknown) =>
    lab.sim.faults.add({
      match: { method: 'GET', path: '/agent/network-get-interfaces' },
      effect: { kind: 'answer', answer: { status: 200, data } },
    })

  it.each<[string, unknown]>([
    [
      'interfaces by the hundred',
      { result: Array.from({ length: 300 }, () => card('10.9.9.9', 'x'.repeat(60))) },
    ],
    [
      'interfaces of control characters',
      { result: [{ ...card('127.9.9.9'), name: '\u001b]0;x\u0007\n\0' }] },
    ],
    ['the password of its proxy', { result: { error: { class: 'hunter2', desc: 'hunter2' } } }],
  ])('that answers with %s fails alone, and leaves nothing behind', async (_, data) => {
    lab = await openLab({ passwords: { pw: 'hunter2' } })
    lab.request('beta')
    await settled(lab, 'beta')
    const id = says(data)
    lab.request('alpha', { spec: { proxy: { auth: { username: 'ci', passwordParameter: 'pw' } } } })
    const row = await settled(lab, 'alpha')
    expect(row).toMatchObject({ phase: 'Failed', problem: { code: 'AgentNeverUp' } })
    expect(row).not.toHaveProperty('address')
    expect(
      JSON.stringify([lab.ledger.items(), lab.outcomes, lab.decisions, lab.calls, lab.queues.deadLetters]),
    ).not.toContain('hunter2')
    expect(JSON.stringify(lab.ledger.items())).not.toMatch(/\\u00(?:1b|07|00)/)
    lab.sim.faults.remove(id)
    expect(lab.row('beta')?.phase).toBe('Ready')
    lab.remove('alpha')
    await lab.run(() => lab.row('alpha')?.phase === 'Deleted')
    expect(lab.leftOvers().vms).toEqual([lab.row('beta')?.place?.vmid])
  })

  it('that bears another proxy’s MAC gets neither its address nor its place', async () => {
    lab = await openLab()
    lab.request('beta')
    const beta = await settled(lab, 'beta')
    says({ result: [card(beta.address ?? '', beta.mac)] })
    lab.request('alpha')
    expect(await settled(lab, 'alpha')).toMatchObject({ phase: 'Failed', problem: { code: 'AgentNeverUp' } })
    expect(lab.row('beta')).toMatchObject({ phase: 'Ready', address: beta.address, turn: beta.turn })
    expect(lab.outcomes.filter(({ uid }) => uid === 'alpha').map(({ type }) => type)).toEqual(['ProxyFailed'])
  })
})

describe('a hostile proxy', () => {
  let server: Server | undefined
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
    server?.close()
  })

  /** Says this to whoever connects, and the second part again and again for as long as somebody listens. */
  async function proxy(
    first: string,
    forEver?: string,
  ): Promise<{ port: number; hungUp: Promise<void>; taken: () => number }> {
    const { promise: hungUp, resolve } = Promise.withResolvers<void>()
    let taken = 0
    const open = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {}).on('close', () => resolve())
      socket.resume()
      socket.write(first)
      const goOn = () => {
        while (forEver && !socket.destroyed) {
          taken += forEver.length
          if (!socket.write(forEver)) return void socket.once('drain', goOn)
        }
      }
      goOn()
    })
    server = open.listen(0, '127.0.0.1')
    await once(open, 'listening')
    return { port: (open.address() as AddressInfo).port, hungUp, taken: () => taken }
  }

  const look = (port: number, timeoutMs = 8000) =>
    probe.http({
      host: '127.0.0.1',
      port,
      url: 'http://page.test/',
      credentials: { username: 'ci', password: 'hunter2-of-the-proxy' },
      signal: new AbortController().signal,
      timeoutMs,
    })

  it.each([
    ['never says more than to go on', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['says nothing', '', undefined],
    ['says a status and no more', 'HTTP/1.1 200 OK\r\nx: ', undefined],
  ])('that %s is hung up on when time is over, whatever came', async (_, first, forEver) => {
    const { port, hungUp } = await proxy(first, forEver)
    expect(await look(port, 300)).toEqual({ kind: 'silent', detail: 'no answer within 0.3 s' })
    await hungUp
  })

  it('that never ends its headers is hung up on', async () => {
    const { port, hungUp, taken } = await proxy('HTTP/1.1 200 OK\r\n', `x-more: ${'y'.repeat(1000)}\r\n`)
    expect((await look(port)).kind).toBe('silent')
    await hungUp
    expect(taken()).toBeLessThan(12 * 1024 * 1024)
  })

  it('that never ends its page has answered, and is hung up on', async () => {
    const { port, hungUp, taken } = await proxy('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(64 * 1024))
    expect((await look(port)).kind).toBe('answers')
    await hungUp
    expect(taken()).toBeLessThan(12 * 1024 * 1024)
  })

  it('that quotes our credentials, or commands a terminal, is quoted by nobody', async () => {
    const basic = Buffer.from('ci:hunter2-of-the-proxy').toString('base64')
    for (const first of [
      `HTTP/1.1 407 hunter2-of-the-proxy ${basic}\u001b[2J\r\nproxy-authenticate: ${basic}\r\n\r\nhunter2-of-the-proxy`,
      `HTTP/1.1 500 ${basic}\r\n\r\n`,
      `hunter2-of-the-proxy ${basic}\u001b[2J\r\n`,
      `HTTP/1.1 200 OK\r\nhunter2-of-the-proxy\u0007\r\n\r\n`,
    ]) {
      const { port } = await proxy(first)
      const { detail } = await look(port)
      expect(detail).not.toContain('hunter2')
      expect(detail).not.toContain(basic)
      expect(detail).toMatch(/^\P{Cc}+$/u)
      server?.close()
    }
  })
})
