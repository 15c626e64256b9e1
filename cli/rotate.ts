import type { Cluster } from '../lib/config.ts'
import { type Administration, isProxmoxError } from '../lib/proxmox/index.ts'
import { CACHE_MS } from '../lib/secrets.ts'
import { goOnLines, grantLines, makeLines, removeLines, type Typing } from './rotation-lines.ts'
import { isSuccessor, type Phase, phaseOf, successorComment } from './rotation-phase.ts'
import { parseToken, type TokenValue, WANTED_TOKEN } from './token-value.ts'
import { Unmet, UsageError } from './usage.ts'

export type RotationPorts = {
  /** The two sources, first and second. */
  store: {
    read(index: 0 | 1): Promise<string | undefined>
    write(index: 0 | 1, value: string): Promise<void>
    removeSecond(): Promise<void>
  }
  /** The cluster, as the holder of a token sees it. */
  as(token: string): Administration
  /** … and as somebody who may make tokens. Without it, the lines to type are printed. */
  admin?: Administration | undefined
  typing: Omit<Typing, 'comment'>
  /** Results, such as lines to type. */
  out(line: string): void
  /** Progress. */
  err(line: string): void
  sleep(ms: number): Promise<void>
  now(): number
}

/** Calls that were under way when the memory of a token ran out. */
const MARGIN_MS = 5_000

/**
 * So long after the new token was put first, no function begins a call with the old one: a warm one believes what it read
 * for as long as lib/secrets.ts says.
 */
export const FORGOTTEN_AFTER_MS = CACHE_MS + MARGIN_MS

/**
 * Replaces a cluster's token: makes a successor with the same grants, stores it second, proves it, puts it first, waits
 * until no function remembers the old order, and removes the old one. Repeatable from wherever it stopped.
 * @throws {Unmet} where it stopped, with the lines to type printed
 */
export async function rotate(ports: RotationPorts, old?: string): Promise<void> {
  const first = stored(await ports.store.read(0), 'first')
  if (!first)
    throw new UsageError(`no token is stored: egress token set ${ports.typing.args} stores the present one`)
  const present = first
  const paths = pathsOf(ports.typing.cluster)
  const second = stored(await ports.store.read(1), 'second')
  const admin = await adminOf(ports, first.user)
  const phase = phaseOf({ first: first.id, second: second?.id }, admin?.entries, old)
  const typing = { ...ports.typing, comment: successorComment(phase.old, ports.now()) }
  const stop = (why: string, lines: string[]): never => {
    for (const line of lines) ports.out(line)
    throw new Unmet(why)
  }

  if (phase.do === 'retire') {
    // Its secret may have been lost between the two writes of a switch.
    const value = second?.id === phase.old ? second.value : undefined
    return retire(phase, first, value)
  }
  const fresh = phase.do === 'switch' && second ? second : await make()
  // Who typed the grants needs no credentials for them.
  if (phase.do === 'switch' && admin && (await lacking(fresh)).length > 0) await grantAll(admin.client)
  await prove(fresh)
  await ports.store.write(0, fresh.value)
  await ports.store.write(1, first.value)
  ports.err(`${fresh.id} is first now, ${first.id} second`)
  return retire({ ...phase, do: 'retire' }, fresh, first.value)

  async function make(): Promise<TokenValue> {
    if (!admin)
      return stop(`stopped before ${phase.fresh} was made: no credentials that may`, makeLines(phase, typing))
    await clearTheWay(admin)
    const value = await mayNot(
      () => admin.client.addToken(phase.fresh, typing.comment),
      () =>
        stop(`stopped before ${phase.fresh} was made: these credentials may not`, makeLines(phase, typing)),
    )
    const made = stored(value, 'made') ?? stop(`${phase.fresh} was made without a secret`, [])
    ports.err(`made ${made.id} on the cluster`)
    try {
      await grantAll(admin.client)
    } finally {
      // Its secret is shown once: it is kept even if the grants have to be typed.
      await ports.store.write(1, made.value)
      ports.err(`stored ${made.id} as the second`)
    }
    return made
  }

  /** A successor whose secret never reached the store is of no use to anybody. */
  async function clearTheWay({ client, entries }: Admin): Promise<void> {
    const there = entries.find(({ id }) => id === phase.fresh)
    if (!entries.some(({ id }) => id === phase.old))
      throw new Unmet(
        `${phase.old} is not on the cluster any more, and its grants went with it: make a token by hand and store it with egress token set`,
      )
    if (!there) return
    if (!isSuccessor(there, phase.old))
      throw new Unmet(
        `${phase.fresh} is on the cluster and was not made by a rotation of ${phase.old}: is it in use?`,
      )
    await client.removeToken(phase.fresh)
    ports.err(`removed ${phase.fresh}, whose secret an earlier rotation did not store`)
  }

  async function grantAll(client: Administration): Promise<void> {
    await mayNot(
      async () => {
        const all = await client.grants()
        const has = ({ path, role }: (typeof all)[number]) =>
          all.some((one) => one.holder === phase.fresh && one.path === path && one.role === role)
        for (const entry of all.filter(({ holder }) => holder === phase.old)) {
          if (!has(entry)) await client.grant({ ...entry, holder: phase.fresh })
        }
      },
      () =>
        stop(
          `stopped before the switch: these credentials may not grant ${phase.fresh} what ${phase.old} has`,
          [
            '# on a node of the cluster, as root',
            ...grantLines(phase.fresh, typing.cluster),
            ...goOnLines(phase.old, typing),
          ],
        ),
    )
  }

  /** What the old token may where proxies live and the new one may not. @throws {Unmet} when the new one is refused */
  async function lacking({ id, value }: TokenValue): Promise<string[]> {
    const its = await privileges(ports.as(value), paths)
    if (!its)
      throw new Unmet(`stopped before the switch: the cluster refuses ${id}; is its stored secret right?`)
    const wanted = await privileges(ports.as(present.value), paths)
    // Where the old one is refused already, anything is better.
    if (!wanted) return [...its.values()].some(({ size }) => size > 0) ? [] : ['every privilege']
    return [...wanted].flatMap(([path, all]) =>
      [...all].filter((one) => !its.get(path)?.has(one)).map((one) => `${path}, ${one}`),
    )
  }

  async function prove(token: TokenValue): Promise<void> {
    const missing = await lacking(token)
    if (missing.length === 0) return ports.err(`${token.id} may do all that ${phase.old} may`)
    const more = missing.length > 5 ? ` and ${missing.length - 5} more` : ''
    stop(`stopped before the switch: ${token.id} lacks ${missing.slice(0, 5).join('; ')}${more}`, [
      '# on a node of the cluster, as root',
      ...grantLines(token.id, typing.cluster),
      ...goOnLines(phase.old, typing),
    ])
  }

  async function retire({ old }: Phase, now: TokenValue, oldValue: string | undefined): Promise<void> {
    const own = await privileges(ports.as(now.value), paths)
    if (!own)
      throw new Unmet(
        `stopped before ${old} is removed: the cluster refuses ${now.id}, which is stored first`,
      )
    if (await isThere(old, oldValue)) {
      ports.err(`waiting ${FORGOTTEN_AFTER_MS / 1000} s, until no function remembers ${old} as the first`)
      await ports.sleep(FORGOTTEN_AFTER_MS)
      const byHand = () => stop(`stopped before ${old} is removed from the cluster`, removeLines(old, typing))
      if (!admin) return byHand()
      // A removal that was not answered may have been carried out meanwhile.
      if (await isThere(old, oldValue)) await mayNot(() => admin.client.removeToken(old), byHand)
      ports.err(`removed ${old} from the cluster`)
    }
    await ports.store.removeSecond()
    ports.out(`${now.id} has replaced ${old}`)
  }

  async function isThere(old: string, value: string | undefined): Promise<boolean> {
    if (admin) return (await admin.client.tokensOf(old.split('!')[0] ?? '')).some(({ id }) => id === old)
    // Without its secret and without credentials nobody can tell; to be asked once too often does no harm.
    return value !== undefined && (await privileges(ports.as(value), paths)) !== undefined
  }
}

type Admin = { client: Administration; entries: Awaited<ReturnType<Administration['tokensOf']>> }

/** Credentials that may not even list tokens are as good as none. */
async function adminOf({ admin, err }: RotationPorts, user: string): Promise<Admin | undefined> {
  if (!admin) return undefined
  return mayNot(
    async () => ({ client: admin, entries: await admin.tokensOf(user) }),
    () => {
      err(`these credentials may not see the tokens of ${user} (User.Modify on /access/groups)`)
      return undefined
    },
  )
}

function stored(value: string | undefined, where: string): TokenValue | undefined {
  if (value === undefined || value === '') return undefined
  const token = parseToken(value)
  if (token) return token
  throw new UsageError(`what is stored as the ${where} is no token: ${WANTED_TOKEN}`)
}

/** Where the functions need privileges. What was granted above reaches down to them. */
export const pathsOf = ({ pool, storage, isoStorage, bridge, images }: Cluster): string[] => [
  pool === undefined ? '/vms' : `/pool/${pool}`,
  ...new Set([`/storage/${storage}`, `/storage/${isoStorage}`]),
  `/sdn/zones/localnetwork/${bridge}`,
  ...new Set(Object.values(images).flatMap((byNode) => Object.values(byNode).map((vmid) => `/vms/${vmid}`))),
]

/** What a token may, undefined when it is refused. The client is used once. */
async function privileges(
  client: Administration,
  paths: readonly string[],
): Promise<ReadonlyMap<string, ReadonlySet<string>> | undefined> {
  try {
    return await client.ownPrivileges(paths)
  } catch (error) {
    if (isProxmoxError(error, 'Unauthorized')) return undefined
    throw error
  } finally {
    await client.close()
  }
}

async function mayNot<T>(act: () => Promise<T>, otherwise: () => T): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (isProxmoxError(error, 'Forbidden')) return otherwise()
    throw error
  }
}
