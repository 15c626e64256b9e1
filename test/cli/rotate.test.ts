import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { FORGOTTEN_AFTER_MS, type RotationPorts, rotate } from '../../cli/rotate.ts'
import { Unmet } from '../../cli/usage.ts'
import { parseConfig } from '../../lib/config.ts'
import { connection } from '../../lib/connection.ts'
import { createAdministration, type Exchange } from '../../lib/proxmox/index.ts'
import { CACHE_MS, createSecrets } from '../../lib/secrets.ts'
import { createSim, createVirtualClock, defaultWorld } from '../../sim/index.ts'
import { createMemoryParameters } from '../fakes/parameters.ts'
import { inProcess } from '../lab/in-process.ts'
import { seededRandom } from '../sim/harness.ts'
import { tokenConfig } from './a-token-config.ts'

const OLD = 'egress@pve!ctl'
const NEW = 'egress@pve!ctl-b'

/** What dies at a write, as a process would: nothing is caught. */
class Killed extends Error {}

type Options = { adminToken?: string | undefined; world?: ReturnType<typeof defaultWorld> }

function open({ world = defaultWorld(), ...options }: Options = {}) {
  const clock = createVirtualClock()
  const sim = createSim({ world, clock, random: seededRandom(1) })
  const cluster = parseConfig(tokenConfig(), 'rotate.yml').clusters.lab
  if (!cluster) throw new Error('no cluster lab')
  const kept: (string | undefined)[] = [world.tokens.egress, undefined]
  const out: string[] = []
  const err: string[] = []
  let deaths = 0
  const as = (token: string) =>
    createAdministration(
      {
        endpoints: world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name })),
        token: { get: async () => [token] },
        exchange: inProcess(sim),
        now: () => clock.now(),
      },
      { signal: new AbortController().signal },
    )
  const adminToken = 'adminToken' in options ? options.adminToken : world.tokens.admin
  const ports: RotationPorts = {
    store: {
      read: async (index) => kept[index],
      write: async (index, value) => {
        if (deaths > 0 && --deaths === 0) throw new Killed()
        kept[index] = value
      },
      removeSecond: async () => {
        if (deaths > 0 && --deaths === 0) throw new Killed()
        kept[1] = undefined
      },
    },
    as,
    admin: adminToken === undefined ? undefined : as(adminToken),
    typing: { cluster, args: '--cluster lab --config rotate.yml' },
    out: (line) => out.push(line),
    err: (line) => err.push(line),
    sleep: (ms) => clock.sleep(ms),
    now: () => clock.now(),
  }
  return {
    sim,
    clock,
    world,
    kept,
    out,
    err,
    ports,
    run: (old?: string) => clock.until(rotate(ports, old)),
    dieAt: (write: number) => {
      deaths = write
    },
    ids: () => kept.map((value) => value?.split('=')[0]),
    onCluster: async () =>
      (await clock.until(as(world.tokens.admin).tokensOf('egress@pve'))).map(({ id }) => id),
    grantsOf: async (id: string) =>
      (await clock.until(as(world.tokens.admin).grants()))
        .filter(({ holder }) => holder === id)
        .map(({ path, role, propagate }) => `${path} ${role} ${propagate}`)
        .sort(),
    /** Types the printed lines of root, each with the names above it filled in. */
    type(lines: string[]) {
      const names = new Map<string, string>()
      const printed: string[] = []
      const fill = (text: string): string =>
        [...names].reduce((all, [name, value]) => all.replaceAll(`$${name}`, value), text)
      const runLine = (line: string) => {
        const { exitCode, stdout, stderr } = sim.root('pve1', argv(line))
        if (exitCode !== 0) throw new Error(`${line}: ${stderr}`)
        printed.push(stdout)
      }
      for (const line of lines) {
        const [, name, value = ''] = /^([A-Z]+)=[("]?(.*?)[)"]?$/.exec(line) ?? []
        if (name === 'BOTH') names.set('{BOTH[@]}', value)
        else if (name !== undefined) names.set(name, value)
        else if (line.startsWith('for id in ')) {
          const body = /; do (.*); done/.exec(line)?.[1] ?? ''
          for (const id of (names.get('TEMPLATES') ?? '').split(' '))
            runLine(fill(body).replaceAll('$id', id))
        } else if (line.startsWith('pveum ')) runLine(fill(line))
      }
      return printed.join('')
    },
  }
}

const argv = (line: string) =>
  (line.replace(/ +# .*$/, '').match(/'[^']*'|\S+/g) ?? []).map((word) => word.replace(/['"]/g, ''))

let rotation: ReturnType<typeof open>
afterEach(async () => {
  const secrets = [...rotation.kept, rotation.world.tokens.egress, rotation.world.tokens.admin]
    .filter((value) => value !== undefined)
    .map((value) => value.slice(value.indexOf('=') + 1))
  for (const secret of secrets) expect([...rotation.out, ...rotation.err].join('\n')).not.toContain(secret)
  await rotation.sim.close()
})

describe('with credentials that may', () => {
  it('a token is replaced by one with the same grants', async () => {
    rotation = open()
    const grants = await rotation.grantsOf(OLD)
    await rotation.run()
    expect(rotation.ids()).toEqual([NEW, undefined])
    expect(await rotation.onCluster()).toEqual([NEW])
    expect(await rotation.grantsOf(NEW)).toEqual(grants)
    expect(rotation.out).toEqual([`${NEW} has replaced ${OLD}`])
  })

  it('the old one is removed only when no memory of it is left', async () => {
    rotation = open()
    const begun = rotation.clock.now()
    await rotation.run()
    expect(rotation.clock.now() - begun).toBeGreaterThanOrEqual(60_000)
  })

  // Thirteen processes, each with a memory of its own that is five seconds older than the next one's, so that all ages are there.
  it.each([
    ['none is refused, for it waits until the last of them has forgotten', 0, false],
    ['some would be, if it waited a quarter of a minute less', 15_000, true],
  ])('while functions are warm and call every five seconds, %s', async (_, less, isRefused) => {
    rotation = open()
    const { clock, sim, kept, ports, world } = rotation
    const parameters = createMemoryParameters()
    const store = () => {
      for (const [index, value] of kept.entries())
        if (value === undefined) parameters.kept.delete(String(index))
        else parameters.kept.set(String(index), value)
      return parameters.client
    }
    const cluster = { ...ports.typing.cluster, token: [{ ssm: '0' }, { ssm: '1' }] }
    let refused = 0
    let answered = 0
    const exchange: Exchange = async (endpoint, request) => {
      const answer = await inProcess(sim)(endpoint, request)
      if (answer.status === 401) refused += 1
      else answered += 1
      return answer
    }
    let isOver = false
    const warm = async (begins: number) => {
      const secrets = createSecrets({ ssm: store, parameters: { ssm: true }, now: () => clock.now() })
      const { token } = connection(cluster, secrets)
      await clock.sleep(begins)
      while (!isOver) {
        const endpoints = world.nodes.map(({ name }) => ({ url: `https://${name}:8006`, node: name }))
        const client = createAdministration(
          { endpoints, token, exchange, now: () => clock.now() },
          { signal: new AbortController().signal },
        )
        await client.version()
        await client.close()
        await clock.sleep(5_000)
      }
    }
    const processes = Array.from({ length: 13 }, (__, index) => warm(index * 5_000))
    await clock.until(clock.sleep(65_000))
    await clock.until(rotate({ ...ports, sleep: (ms) => clock.sleep(ms - less) }))
    await clock.until(clock.sleep(10_000))
    isOver = true
    await clock.until(Promise.all(processes))
    expect(answered).toBeGreaterThan(13 * 15)
    // Refused, a function tries the second at once: nobody fails, each refusal takes Proxmox three seconds.
    expect(refused > 0).toBe(isRefused)
  })

  it('the page for operators says how long that is', () => {
    const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    expect(page).toContain(`a warm function believes what it read for up to ${CACHE_MS / 1000} s`)
    expect(page).toContain(`waits ${FORGOTTEN_AFTER_MS / 1000} s, removes the old one`)
  })

  it('it is replaced again and again, in turn', async () => {
    rotation = open()
    for (const id of [NEW, 'egress@pve!ctl-a', NEW]) {
      await rotation.run()
      expect(rotation.ids()).toEqual([id, undefined])
      expect(await rotation.onCluster()).toEqual([id])
    }
  })

  // Stores the second; the two of the switch; removes the second.
  it.each([1, 2, 3, 4])('a rotation that died at its write %i goes on', async (write) => {
    rotation = open()
    const grants = await rotation.grantsOf(OLD)
    rotation.dieAt(write)
    await expect(rotation.run()).rejects.toThrow(Killed)
    expect(rotation.kept[0]).toBeDefined()
    await rotation.run()
    expect(rotation.ids()).toEqual([NEW, undefined])
    expect(await rotation.onCluster()).toEqual([NEW])
    expect(await rotation.grantsOf(NEW)).toEqual(grants)
  })

  it.each(['POST', 'PUT', 'DELETE'])('and one whose %s was not answered', async (method) => {
    rotation = open()
    rotation.sim.faults.add({
      match: { method, path: '/access/' },
      times: 1,
      effect: {
        kind: 'answer',
        answer: { status: 596, reason: 'Connection timed out' },
        runAfterMs: 10,
      },
    })
    await expect(rotation.run()).rejects.toMatchObject({ code: 'Unreachable' })
    await rotation.run()
    expect(rotation.ids()).toEqual([NEW, undefined])
    expect(await rotation.onCluster()).toEqual([NEW])
  })

  it('a token of the same name that is somebody’s is left alone', async () => {
    rotation = open()
    rotation.sim.root('pve1', ['pveum', 'user', 'token', 'add', 'egress@pve', 'ctl-b'])
    await expect(rotation.run()).rejects.toThrow('was not made by a rotation')
    expect(await rotation.onCluster()).toEqual([OLD, NEW])
    expect(rotation.ids()).toEqual([OLD, undefined])
  })
})

describe('without credentials', () => {
  it('each step is printed to be typed, and leads to the end', async () => {
    rotation = open({ adminToken: undefined })
    await expect(rotation.run()).rejects.toThrow(Unmet)
    const secret = /^value (\S+)$/m.exec(rotation.type(rotation.out))?.[1]
    expect(rotation.out).toContain('egress token set --cluster lab --config rotate.yml --second')
    rotation.kept[1] = `${NEW}=${secret}`
    expect(rotation.out.at(-1)).toBe(`egress token rotate --cluster lab --config rotate.yml --old '${OLD}'`)
    rotation.out.length = 0
    await expect(rotation.run(OLD)).rejects.toThrow(`stopped before ${OLD} is removed`)
    expect(rotation.ids()).toEqual([NEW, OLD])
    rotation.type(rotation.out)
    rotation.out.length = 0
    await rotation.run(OLD)
    expect(rotation.ids()).toEqual([NEW, undefined])
    expect(await rotation.onCluster()).toEqual([NEW])
  })

  it('a successor that may less is not put first', async () => {
    rotation = open({ adminToken: undefined })
    const made = rotation.sim.root('pve1', ['pveum', 'user', 'token', 'add', 'egress@pve', 'ctl-b'])
    rotation.kept[1] = `${NEW}=${/^value (\S+)$/m.exec(made.stdout)?.[1]}`
    await expect(rotation.run(OLD)).rejects.toThrow(/lacks \/\S+, [A-Z]\w+\./)
    expect(rotation.ids()).toEqual([OLD, NEW])
    rotation.type(rotation.out)
    await expect(rotation.run(OLD)).rejects.toThrow(`stopped before ${OLD} is removed`)
    expect(rotation.ids()).toEqual([NEW, OLD])
  })

  it('credentials that may not see tokens are as good as none', async () => {
    const world = defaultWorld()
    rotation = open({ world, adminToken: world.tokens.egress })
    await expect(rotation.run()).rejects.toThrow(`stopped before ${NEW} was made`)
    expect(rotation.err.join()).toContain('may not see the tokens')
    expect(rotation.out.join('\n')).toContain('pveum user token add egress@pve ctl-b')
  })

  it('credentials that may make tokens and not grant stop before the switch, and go on once it is typed', async () => {
    const world = defaultWorld()
    world.roles = { ...world.roles, Tokens: ['User.Modify', 'Sys.Audit'] }
    world.acl = (world.acl ?? []).map((one) => (one.ugid === 'admin@pve' ? { ...one, role: 'Tokens' } : one))
    rotation = open({ world })
    await expect(rotation.run()).rejects.toThrow('may not grant')
    expect(rotation.ids()).toEqual([OLD, NEW])
    rotation.type(rotation.out)
    await rotation.run()
    expect(rotation.ids()).toEqual([NEW, undefined])
  })
})
