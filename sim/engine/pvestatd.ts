import type { Cluster } from './cluster.ts'
import { bootDisk, parseSize } from './drives.ts'
import type { Node, RrdEntry, State, Vm } from './state.ts'

const roundMs = 10_000
const keptMs = 300_000

/**
 * Takes down what pvestatd has told in its rounds up to now. Between two rounds nothing it tells about may change
 * unseen, so this is called before each change: then the state at the last round is still the state of now.
 */
export function catchUp(state: State, nowMs: number): void {
  for (const node of state.nodes) {
    const round = Math.floor((nowMs - phaseOf(node)) / roundMs)
    if (round <= node.lastRound) continue
    node.lastRound = round
    if (node.stopped.includes('pvestatd')) continue
    const atMs = round * roundMs + phaseOf(node)
    for (const vm of Object.values(state.vms)) {
      if (vm.node === node.name && !vm.container)
        state.rrd[vm.vmid] = { atMs, fields: told(vm, atMs, state.version) }
    }
  }
}

/** Each node's daemon was started at another moment. */
const phaseOf = (node: Node): number => node.bootMs % roundMs

function told(vm: Vm, atMs: number, version: 8 | 9): RrdEntry['fields'] {
  const { config } = vm
  return {
    name: String(config.name ?? `VM ${vm.vmid}`),
    status: vm.run?.qmpstatus ?? 'stopped',
    template: config.template === undefined ? 0 : 1,
    uptime: vm.run ? Math.floor((atMs - vm.run.sinceMs) / 1000) : 0,
    maxcpu: cpusOf(vm),
    cpu: 0,
    mem: vm.run ? 3_415_224 : 0,
    maxmem: memoryOf(vm),
    disk: 0,
    maxdisk: diskSizeOf(vm),
    netin: 0,
    netout: 0,
    diskread: 0,
    diskwrite: 0,
    ...(version === 9 ? { memhost: 0 } : {}),
  }
}

export function cpusOf(vm: Vm): number {
  return Number(vm.config.cores ?? 1) * Number(vm.config.sockets ?? 1)
}

export function memoryOf(vm: Vm): number {
  const text = /^(?:current=)?(\d+)/.exec(String(vm.config.memory ?? 512))?.[1]
  return Number(text) * 1024 ** 2
}

export function diskSizeOf(vm: Vm): number {
  const size = bootDisk(vm.config)?.options.size
  return size === undefined ? 0 : parseSize(size)
}

/** What a listing shows of a guest: for five minutes the last that was told under its VMID, whoever had it then. */
export function lastTold(cluster: Cluster, vmid: number): RrdEntry['fields'] | undefined {
  const entry = cluster.state.rrd[vmid]
  return entry && cluster.clock.now() - entry.atMs < keptMs ? entry.fields : undefined
}
