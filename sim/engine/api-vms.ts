import { type Cluster, confMissing, vmOn } from './cluster.ts'
import {
  type Ctx,
  type Endpoint,
  flag,
  may,
  maybeText,
  mustHave,
  reply,
  vmidOf,
  vmParams,
} from './endpoint.ts'
import { die } from './errors.ts'
import { isAgentEnabled } from './guests.ts'
import { haState } from './ha.ts'
import { cpusOf, diskSizeOf, memoryOf } from './pvestatd.ts'
import { type Conf, digestOf, type Vm } from './state.ts'

const audit = (ctx: Ctx): void => mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Audit')

export const vmEndpoints: Endpoint[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu',
    handler: (ctx) => {
      const own = Object.values(ctx.cluster.state.vms).filter(
        (vm) => vm.node === ctx.node && !vm.container && may(ctx, `/vms/${vm.vmid}`, 'VM.Audit'),
      )
      return reply(
        own.map((vm) => ({
          ...figures(ctx, vm),
          ...(flag(ctx, 'full') ? { qmpstatus: qmpStatus(ctx.cluster, vm) } : {}),
        })),
      )
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/config',
    permission: audit,
    handler: (ctx) => reply(config(ctx)),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/pending',
    proxied: true,
    parameters: vmParams,
    permission: audit,
    handler: (ctx) => reply(pending(theVm(ctx))),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/status',
    proxied: true,
    parameters: vmParams,
    handler: () =>
      reply(
        ['current', 'start', 'stop', 'reset', 'shutdown', 'suspend', 'reboot'].map((subdir) => ({ subdir })),
      ),
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/status/current',
    permission: audit,
    handler: (ctx) => reply(current(ctx, theVm(ctx))),
  },
]

/** @throws {PveError} when there is no such VM on the node of the call. */
export function theVm(ctx: Ctx): Vm {
  const vmid = vmidOf(ctx)
  return vmOn(ctx.cluster, ctx.node, vmid) ?? die(confMissing(ctx.node, vmid))
}

function qmpStatus(cluster: Cluster, vm: Vm): string {
  return (vm.run && cluster.guests.qmpstatus(vm.vmid)) ?? vm.run?.qmpstatus ?? 'stopped'
}

/** What the node itself knows of a VM at this moment. */
function figures(ctx: Ctx, vm: Vm) {
  const nowMs = ctx.cluster.clock.now()
  const { config, run } = vm
  return {
    vmid: vm.vmid,
    name: String(config.name ?? `VM ${vm.vmid}`),
    status: run ? 'running' : 'stopped',
    cpus: cpusOf(vm),
    cpu: 0,
    mem: run ? 3_415_224 : 0,
    maxmem: memoryOf(vm),
    disk: 0,
    maxdisk: diskSizeOf(vm),
    netin: 0,
    netout: 0,
    uptime: run ? Math.floor((nowMs - run.sinceMs) / 1000) : 0,
    ...(ctx.cluster.state.version === 9 ? { memhost: 0 } : {}),
    ...(config.serial0 === undefined ? {} : { serial: 1 }),
    ...(config.template === undefined ? {} : { template: 1 }),
    ...(config.lock === undefined ? {} : { lock: config.lock }),
    ...(config.tags === undefined ? {} : { tags: config.tags }),
    ...(run ? { pid: run.pid } : {}),
    ...(run && ctx.cluster.state.version === 9 ? pressures : {}),
  }
}

const pressures = Object.fromEntries(
  ['cpu', 'io', 'memory'].flatMap((what) => [
    [`pressure${what}some`, 0],
    [`pressure${what}full`, 0],
  ]),
)

function current(ctx: Ctx, vm: Vm) {
  const nets = Object.keys(vm.config).filter((key) => /^net\d+$/.test(key))
  return {
    ...figures(ctx, vm),
    qmpstatus: qmpStatus(ctx.cluster, vm),
    ha: haOf(ctx, vm),
    ...(isAgentEnabled(vm) ? { agent: 1 } : {}),
    ...(vm.run
      ? {
          nics: Object.fromEntries(
            nets.map((net) => [`tap${vm.vmid}i${net.slice(3)}`, { netin: 0, netout: 0 }]),
          ),
        }
      : {}),
  }
}

function haOf({ cluster }: Ctx, { vmid }: Vm) {
  const state = haState(cluster, vmid)
  return state === undefined ? { managed: 0 } : { managed: 1, state }
}

function config(ctx: Ctx): Conf {
  const vm = theVm(ctx)
  const snapshot = maybeText(ctx, 'snapshot')
  const digest = digestOf(vm)
  if (snapshot !== undefined) {
    const conf = vm.snapshots[snapshot] ?? die(`snapshot '${snapshot}' does not exist`)
    return { ...shown(conf), digest }
  }
  return { ...shown(flag(ctx, 'current') ? vm.config : withPending(vm)), digest }
}

export function withPending(vm: Vm): Conf {
  const conf = { ...vm.config, ...vm.pending.set }
  for (const key of vm.pending.delete) delete conf[key]
  return conf
}

const numeric = new Set([
  'cores',
  'sockets',
  'onboot',
  'protection',
  'template',
  'balloon',
  'cpuunits',
  'numa',
  'kvm',
  'tablet',
  'acpi',
  'vcpus',
  'shares',
  'autostart',
  'freeze',
  'localtime',
  'ciupgrade',
  'reboot',
  'tdf',
  'cpulimit',
])

/** Numbers as numbers, the password as stars. */
function shown(conf: Conf): Conf {
  return Object.fromEntries(
    Object.entries(conf).map(([key, value]) => {
      if (key === 'cipassword') return [key, '**********']
      return [key, numeric.has(key) ? Number(value) : String(value)]
    }),
  )
}

function pending(vm: Vm) {
  const present = Object.entries({ ...shown(vm.config), digest: digestOf(vm) }).map(([key, value]) => ({
    key,
    value,
    ...(vm.pending.set[key] === undefined ? {} : { pending: vm.pending.set[key] }),
    ...(vm.pending.delete.includes(key) ? { delete: 1 } : {}),
  }))
  const added = Object.entries(vm.pending.set).filter(([key]) => vm.config[key] === undefined)
  return [...present, ...added.map(([key, value]) => ({ key, pending: value }))]
}
