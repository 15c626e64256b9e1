import { randomBytes } from 'node:crypto'
import { realClock } from '../clock.ts'
import type { Daemon, Durations, NodeState, SimOptions, World } from '../types.ts'
import { createBlobs } from './blobs.ts'
import { type Cluster, nodeOf } from './cluster.ts'
import { createEngine } from './engine.ts'
import { createFaults } from './faults.ts'
import { createGuestHouse, silentGuests } from './guests.ts'
import { createLocks } from './locks.ts'
import { programs } from './programs.ts'
import { catchUp } from './pvestatd.ts'
import { diskOf } from './state.ts'
import { createStore } from './store.ts'
import { createTasks } from './tasks.ts'
import { powerOn } from './vm-power.ts'
import { createWorkers } from './workers.ts'
import { stateOf } from './world.ts'

const usual: Durations = {
  cloneMs: 2000,
  clonePerGiBMs: 0,
  linkedCloneMs: 200,
  storageLockMs: 50,
  uploadMs: 200,
  deleteVolumeMs: 100,
  startMs: 800,
  stopMs: 300,
  shutdownMs: 2000,
  destroyMs: 150,
  resizeMs: 150,
  configMs: 20,
  forkMs: 10,
}

/** Builds the cluster from its world, or from what was left on disk, and sets it going. */
export function createCluster(options: SimOptions) {
  const clock = options.clock ?? realClock()
  const store = createStore(options.stateDir)
  const left = store.load()
  const state = left ?? stateOf(options.world, clock.now(), seeded(options.random))
  const listeners = new Set<(node: string) => void>()
  let closed = false
  let calls = 0

  const get = () => cluster
  const cluster: Cluster = {
    state,
    clock,
    random: seeded(options.random),
    durations: { ...usual, ...options.durations },
    locks: createLocks(clock),
    blobs: createBlobs(options.stateDir),
    faults: createFaults(),
    guests: createGuestHouse(get),
    workers: createWorkers(),
    tasks: createTasks(get, programs),
    guestFactory: options.guests ?? silentGuests,
    ...(options.disks && { disks: options.disks }),
    options: new Set(),
    catchUp: () => catchUp(state, clock.now()),
    commit: () => {
      if (!closed) store.save(state)
    },
    closed: () => closed,
    nextCall: () => ++calls,
    onReachability(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const { engine, calls: log, configOptions } = createEngine(cluster)
  cluster.options = configOptions
  if (!left) {
    keepContents(cluster, options.world)
    for (const volume of Object.values(state.volumes))
      if (volume.content === 'images') options.disks?.begin(diskOf(volume))
  }

  const hosts = hostControl(cluster, (node) => {
    for (const listener of listeners) listener(node)
  })
  if (left) wakeUp(cluster, options.hostReset ? hosts.reset : undefined)
  else for (const vm of Object.values(state.vms)) if (vm.run) cluster.guests.boot(vm, vm.boots++ === 0)
  cluster.commit()

  return {
    cluster,
    engine,
    log,
    hosts,
    async close() {
      cluster.commit()
      closed = true
      cluster.tasks.stopAll()
      await cluster.guests.closeAll()
    },
  }
}

/** Bytes of images that the world itself brings along. */
function keepContents(cluster: Cluster, world: World): void {
  for (const volume of world.volumes ?? []) {
    if (volume.content === undefined) continue
    const kept = Object.values(cluster.state.volumes).filter(
      (other) =>
        other.storage === volume.storage &&
        other.name === volume.name &&
        (!volume.node || other.node === volume.node),
    )
    const blob = `world-${randomBytes(8).toString('hex')}`
    cluster.blobs.put(blob, Buffer.from(volume.content, 'base64'))
    for (const other of kept) other.blob = blob
  }
}

/** After the process was opened again: the guests of running VMs boot anew, tasks go on or, after a reset, are dead. */
function wakeUp(cluster: Cluster, reset: ((node: string) => void) | undefined): void {
  if (reset) {
    for (const node of cluster.state.nodes) reset(node.name)
    return
  }
  for (const vm of Object.values(cluster.state.vms)) if (vm.run) cluster.guests.boot(vm, false)
  cluster.tasks.resume()
}

function hostControl(cluster: Cluster, changed: (node: string) => void) {
  return {
    setState(name: string, state: NodeState): void {
      Object.assign(nodeOf(cluster, name), { state, stateSinceMs: cluster.clock.now() })
      cluster.commit()
      changed(name)
    },

    setDaemon(name: string, daemon: Daemon, running: boolean): void {
      cluster.catchUp()
      const node = nodeOf(cluster, name)
      node.stopped = node.stopped.filter((other) => other !== daemon)
      if (!running) node.stopped.push(daemon)
      cluster.commit()
      changed(name)
    },

    /** Power off and on: every process is dead, the locks of /run are gone, VMs start by their `onboot` alone. */
    reset(name: string): void {
      cluster.catchUp()
      for (const task of Object.values(cluster.state.tasks)) {
        if (task.node === name && task.endMs === undefined) cluster.tasks.kill(task.upid, 'KILL')
      }
      nodeOf(cluster, name).bootMs = cluster.clock.now()
      nodeOf(cluster, name).lastRound = -1
      for (const vm of Object.values(cluster.state.vms)) {
        if (vm.node !== name) continue
        cluster.guests.powerOff(vm.vmid)
        delete vm.run
        if (
          Number(vm.config.onboot ?? 0) === 1 &&
          vm.config.template === undefined &&
          vm.config.lock === undefined
        )
          powerOn(cluster, vm)
      }
      cluster.commit()
    },
  }
}

const seeded = (random: (() => number) | undefined): (() => number) =>
  random ?? (() => randomBytes(4).readUInt32BE() / 2 ** 32)
