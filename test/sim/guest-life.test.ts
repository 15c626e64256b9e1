import { once } from 'node:events'
import { createServer } from 'node:http'
import { Agent, FormData, fetch, ProxyAgent } from 'undici'
import { describe, expect, it } from 'vitest'
import { makeSeed } from '../../lib/nocloud/index.ts'
import { createSim, defaultWorld, loopbackGuests, realClock } from '../../sim/index.ts'

const quick = {
  cloneMs: 5,
  linkedCloneMs: 5,
  uploadMs: 5,
  startMs: 5,
  stopMs: 5,
  destroyMs: 5,
  configMs: 1,
  deleteVolumeMs: 5,
  forkMs: 1,
  storageLockMs: 1,
}

describe.each([8, 9] as const)('sim: a whole life over HTTPS, PVE %d', (version) => {
  it('leads from a template to a page fetched through a proxy, and back to nothing', async () => {
    const clock = realClock()
    const world = defaultWorld({ version, nodes: 1 })
    const guests = loopbackGuests({ clock, bootMs: 20, cluster: `life-${version}-${process.pid}` })
    const sim = createSim({ world, clock, durations: quick, guests })
    const { endpoints, ca } = await sim.listen()
    const dispatcher = new Agent({ connect: { ca } })
    const headers = { authorization: `PVEAPIToken=${world.tokens.egress}` }

    async function api(method: string, path: string, body?: URLSearchParams | FormData): Promise<unknown> {
      const response = await fetch(`${endpoints[0]?.url}/api2/json${path}`, {
        method,
        headers,
        dispatcher,
        ...(body && { body }),
      })
      const text = await response.text()
      if (response.status !== 200)
        throw new Error(`${method} ${path}: ${response.status} ${response.statusText}`)
      const { data } = JSON.parse(text) as { data: unknown } // every answer of status 200 has it
      return data
    }
    async function done(upid: Promise<unknown>): Promise<void> {
      const path = `/nodes/pve1/tasks/${encodeURIComponent(String(await upid))}/status`
      await expect
        .poll(() => api('GET', path), { timeout: 20_000 })
        .toMatchObject({ status: 'stopped', exitstatus: 'OK' })
    }

    await done(
      api(
        'POST',
        '/nodes/pve1/qemu/9000/clone',
        new URLSearchParams({ newid: '101', name: 'egress-1', pool: 'egress' }),
      ),
    )
    const { net0 } = (await api('GET', '/nodes/pve1/qemu/101/config')) as { net0: string } // as configured by the world
    const mac = /virtio=([0-9A-F:]+)/.exec(net0)?.[1]?.toLowerCase() ?? ''
    const seed = makeSeed({
      instanceId: 'i',
      hostname: 'egress-1',
      mac,
      proxy: { port: 3128, allow: ['127.0.0.0/8'] },
      probeFrom: [],
    })
    const form = new FormData()
    form.set('content', 'iso')
    form.set('filename', new Blob([Buffer.from(seed)]), 'egress-1.iso')
    await done(api('POST', '/nodes/pve1/storage/local/upload', form))
    await api(
      'PUT',
      '/nodes/pve1/qemu/101/config',
      new URLSearchParams({ ide2: 'local:iso/egress-1.iso,media=cdrom' }),
    )
    await done(api('POST', '/nodes/pve1/qemu/101/status/start'))

    type Listed = { result: { name: string; 'ip-addresses': { 'ip-address': string }[] }[] }
    const ask = () => api('GET', '/nodes/pve1/qemu/101/agent/network-get-interfaces').catch(() => undefined)
    await expect.poll(ask, { timeout: 20_000 }).toBeDefined()
    const { result } = (await ask()) as Listed // as just polled
    const address = result.find(({ name }) => name === 'eth0')?.['ip-addresses'][0]?.['ip-address']

    const site = createServer((_, response) => response.end('a page'))
    site.listen(0, '127.0.0.1')
    await once(site, 'listening')
    const where = site.address()
    const page = `http://127.0.0.1:${typeof where === 'object' ? where?.port : ''}/`
    const proxy = new ProxyAgent({ uri: `http://${address}:3128`, proxyTunnel: true })
    expect(await (await fetch(page, { dispatcher: proxy })).text()).toBe('a page')

    await done(api('POST', '/nodes/pve1/qemu/101/status/stop'))
    await proxy.close()
    const refused = new ProxyAgent({ uri: `http://${address}:3128`, proxyTunnel: true })
    await expect(fetch(page, { dispatcher: refused })).rejects.toMatchObject({
      cause: { code: 'ECONNREFUSED' },
    })
    await done(api('DELETE', '/nodes/pve1/storage/local/content/iso/egress-1.iso'))
    await done(api('DELETE', '/nodes/pve1/qemu/101?purge=1'))
    expect(sim.vms().map(({ vmid }) => vmid)).toEqual([9000])
    expect(sim.volumes().filter(({ content }) => content === 'iso')).toEqual([])

    for (const agent of [refused, dispatcher]) await agent.close()
    site.close()
    await sim.close()
  })
})
