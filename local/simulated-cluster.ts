import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import {
  createSim,
  defaultWorld,
  type GuestFactory,
  guestImage,
  listenAdmin,
  loopbackGuests,
  type Qcow2Disks,
  qcow2Disks,
  qemuGuests,
  realClock,
  type Sim,
  type World,
} from '../sim/index.ts'
import { createOpened } from './opened.ts'
import { withOptionalRoles } from './optional-roles.ts'
import { onItsPort, type Ports } from './ports.ts'
import { writeAtomically } from './write-atomically.ts'

export type SimulatedCluster = {
  endpoints: { node: string; url: string; fingerprint: string }[]
  /** Of the door for scripts and `egress sim …`. */
  admin: string
  /** Hold the API tokens that the functions use: the first, and where a second one goes while it is replaced. */
  tokenFiles: [first: string, second: string]
  close(): Promise<void>
}

export type GuestKind = 'loopback' | 'qemu'

export type ClusterOptions = {
  folder: string
  ports: Ports
  version?: 8 | 9
  nodes?: number
  /** The hosts were reset meanwhile: tasks that were running are dead. */
  hostReset?: boolean
  /** A privilege that the functions' token is to lack. */
  deny?: string
  /** `qemu`: real machines, emulated, boot from the seeds. Without it each is a proxy in this process. */
  guests?: GuestKind
  /** Told what takes its time before the cluster is there. */
  onNotice?: (line: string) => void
  /** Told each line that a simulated machine prints on its console. */
  onConsole?: (line: { vmid: number; node: string; text: string }) => void
}

/** How long things take in a quick lab, in ms. */
const durations = { linkedCloneMs: 1500, uploadMs: 300, startMs: 800, destroyMs: 400, bootMs: 2000 }

/**
 * Opens a simulated cluster whose state lives in the folder: on HTTPS for the functions, on a plain loopback port for
 * scripts. Version, nodes and denied privilege count when the folder is new; afterwards the state on disk does.
 * @throws {Error} for a privilege that the token does not have in the first place
 * @throws {NoGuestImage} when real guests are wanted and cannot be had here
 */
export async function openCluster(options: ClusterOptions): Promise<SimulatedCluster> {
  const { folder, ports, version, nodes, hostReset = false, deny } = options
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const tokenFiles: [string, string] = [join(folder, 'token'), join(folder, 'next-token')]
  const adminFile = join(folder, 'admin-token')
  const secret = secretIn(tokenFiles[0], 'egress@pve!ctl')
  const adminSecret = secretIn(adminFile, 'admin@pve!test')
  const world = withOptionalRoles(
    defaultWorld({
      ...(version && { version }),
      ...(nodes && { nodes }),
      ...(secret && { secret }),
      ...(adminSecret && { adminSecret }),
    }),
  )
  // A token that is there already may be one that a rotation left.
  if (!existsSync(tokenFiles[0])) {
    writeAtomically(adminFile, `${world.tokens.admin}\n`)
    writeAtomically(tokenFiles[0], `${world.tokens.egress}\n`)
  }

  const sim = createSim({
    world: deny === undefined ? world : without(deny, world),
    stateDir: join(folder, 'state'),
    hostReset,
    durations,
    ...(await guestsOf(options)),
  })
  const opened = createOpened()
  opened.add(sim)
  try {
    const endpoints = await listen(sim, ports)
    const admin = opened.add(await onItsPort(ports, 'sim-admin', (port) => openDoor(sim, port)))
    return { endpoints, admin: admin.url, tokenFiles, close: opened.close }
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** What a folder was begun with, in case its state was never written. */
function secretIn(file: string, tokenId: string): string | undefined {
  if (!existsSync(file)) return undefined
  const [id, secret] = readFileSync(file, 'utf8').trim().split('=')
  return id === tokenId ? secret : undefined
}

async function guestsOf({
  folder,
  guests: kind,
  onConsole,
  onNotice,
}: ClusterOptions): Promise<{ guests: GuestFactory; disks?: Qcow2Disks }> {
  // By the folder, so that two clusters on this machine do not share their machines' addresses.
  const cluster = resolve(folder)
  const onLine = onConsole && { onLine: onConsole }
  if (kind !== 'qemu') {
    return { guests: loopbackGuests({ clock: realClock(), bootMs: durations.bootMs, cluster, ...onLine }) }
  }
  const image = await guestImage(onNotice && { onLine: onNotice })
  const disks = qcow2Disks(join(cluster, 'disks'), image.golden)
  return { guests: qemuGuests({ image, disks, cluster, ...onLine }), disks }
}

async function openDoor(sim: Sim, port: number) {
  const door = await listenAdmin(sim, { port })
  return { ...door, port: Number(new URL(door.url).port) }
}

async function listen(sim: Sim, ports: Ports) {
  const name = (node: string) => `sim-${node}`
  const remembered = Object.fromEntries(sim.nodes().map((node) => [node.name, ports.of(name(node.name))]))
  const { endpoints } = await sim.listen({ ports: remembered }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    return sim.listen()
  })
  for (const { node, url } of endpoints) ports.remember(name(node), Number(new URL(url).port))
  return endpoints
}

function without(privilege: string, world: World): World {
  const roles = Object.entries(world.roles ?? {})
  if (!roles.some(([, privileges]) => privileges.includes(privilege))) {
    const known = [...new Set(roles.flatMap(([, privileges]) => privileges))].sort()
    throw new Error(`the token has no privilege ${privilege} to lack; it has ${known.join(', ')}`)
  }
  const lacking = roles.map(([role, list]) => [role, list.filter((one) => one !== privilege)])
  return { ...world, roles: Object.fromEntries(lacking) }
}
