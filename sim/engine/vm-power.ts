import { withPending } from './api-vms.ts'
import { type Cluster, confMissing, isQuorate, lockOn, lockTimeout, nodeOf, vmLock, vmOn } from './cluster.ts'
import { drivesOf, hasVolume, isCdrom } from './drives.ts'
import {
  type Ctx,
  type Endpoint,
  flag,
  maybeNumber,
  mustHave,
  reply,
  text,
  vmidOf,
  vmParams,
} from './endpoint.ts'
import { die, refuseParams } from './errors.ts'
import { haTask, roundSoon } from './ha.ts'
import { parseNet } from './net.ts'
import { end, type Go, lock, next, type Program, type Run } from './program.ts'
import type { Vm } from './state.ts'
import { activeStorage, findVolume, parseVolumeId } from './storage.ts'
import { checkLock } from './vm-lock.ts'

type PowerData = {
  vmid: number
  timeoutSeconds?: number
  forceStop?: boolean
  wasSuspended?: boolean
  waitedSeconds?: number
}
type PowerRun = Run<PowerData>

const path = '/nodes/{node}/qemu/{vmid}/status'
const permission = (ctx: Ctx): void => mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.PowerMgmt')

/** Source: qemu-server API2/Qemu.pm vm_start, vm_stop, vm_shutdown: nothing of the VM is looked at before the fork. */
export const powerEndpoints: Endpoint[] = [
  { method: 'POST', path: `${path}/start`, permission, handler: (ctx) => reply(fork(ctx, 'qmstart', {})) },
  {
    method: 'POST',
    path: `${path}/stop`,
    permission,
    handler(ctx) {
      if (flag(ctx, 'overrule-shutdown')) endShutdowns(ctx)
      return reply(fork(ctx, 'qmstop', {}))
    },
  },
  {
    method: 'POST',
    path: `${path}/shutdown`,
    permission,
    handler: (ctx) =>
      reply(
        fork(ctx, 'qmshutdown', {
          timeoutSeconds: maybeNumber(ctx, 'timeout') ?? 60,
          forceStop: flag(ctx, 'forceStop'),
        }),
      ),
  },
  {
    method: 'POST',
    path: `${path}/reboot`,
    proxied: true,
    protected: true,
    parameters: { ...vmParams, timeout: { type: 'integer', min: 0, optional: true } },
    permission,
    handler(ctx) {
      const vm = vmOn(ctx.cluster, ctx.node, vmidOf(ctx))
      if (!vm?.run) die(`VM ${vmidOf(ctx)} not running`)
      return die('reboot is not part of this simulator')
    },
  },
]

function fork(ctx: Ctx, type: string, more: Omit<PowerData, 'vmid'>): string {
  for (const option of ['skiplock', 'keepActive', 'migratedfrom']) {
    if (ctx.params[option] !== undefined && ctx.caller !== 'root@pam')
      refuseParams({ [option]: 'Only root may use this option.' })
  }
  if (type === 'qmstart' && !isQuorate(ctx.cluster, ctx.node)) die('cluster not ready - no quorum?')
  const vmid = Number(text(ctx, 'vmid'))
  return ctx.cluster.tasks.fork(ctx.node, haTask(ctx.cluster, vmid, type), String(vmid), ctx.caller, {
    vmid,
    ...more,
  })
}

function endShutdowns(ctx: Ctx): void {
  for (const task of Object.values(ctx.cluster.state.tasks)) {
    if (
      task.endMs === undefined &&
      task.type === 'qmshutdown' &&
      task.id === text(ctx, 'vmid') &&
      task.node === ctx.node
    )
      ctx.cluster.tasks.kill(task.upid, 'TERM')
  }
}

const lockVm = (run: PowerRun, stage: string): Go => {
  const file = vmLock(run.data.vmid)
  return lock(lockOn(run.node, file), 'exclusive', 10_000, stage, lockTimeout(file))
}

/** Source: qemu-server QemuServer.pm vm_start, vm_start_nolock. */
export const startProgram: Program<PowerData> = {
  stages: {
    begin: (run) => lockVm(run, 'check'),
    check(run) {
      const { cluster, data, node } = run
      const vm = vmOn(cluster, node, data.vmid) ?? die(confMissing(node, data.vmid))
      if (vm.config.template !== undefined) die("you can't start a vm if it's a template")
      const suspended = vm.config.lock === 'suspended'
      checkLock(vm, 'suspended')
      if (vm.run) die(`VM ${data.vmid} already running`)
      vm.config = withPending(vm)
      vm.pending = { set: {}, delete: [] }
      if (suspended) {
        run.log('Resuming suspended VM')
        data.wasSuspended = true
      }
      activateVolumes(run, vm)
      return next('started', cluster.durations.startMs)
    },
    started(run) {
      const { cluster, data, node } = run
      const vm = vmOn(cluster, node, data.vmid) ?? die(confMissing(node, data.vmid))
      powerOn(cluster, vm)
      if (data.wasSuspended) {
        run.log('Resumed VM, removing state')
        delete vm.config.lock
      }
      // A real machine takes a moment, and may not start at all.
      return cluster.disks ? next('up', 100) : end
    },
    up(run) {
      const { cluster, data } = run
      const start = cluster.guests.startOf(data.vmid)
      if (start.kind === 'under way') return next('up', 100)
      if (start.kind === 'done') return end
      for (const line of start.words.split('\n')) run.log(line)
      const vm = cluster.state.vms[data.vmid]
      if (vm) powerOff(cluster, vm)
      return die('start failed: QEMU exited with code 1')
    },
  },
}

/** @throws {PveError} for the first volume that is not there to be used. */
function activateVolumes({ cluster, log, warn }: PowerRun, vm: Vm): void {
  for (const drive of drivesOf(vm.config)) {
    if (drive.file === 'cdrom') warn('no physical CD-ROM available, ignoring')
    if (!hasVolume(drive)) continue
    const id = parseVolumeId(drive.file)
    const storage = activeStorage(cluster, id.storage, vm.node)
    const content = isCdrom(drive) && id.name.startsWith('iso/') ? 'iso' : 'images'
    if (!storage.content.includes(content))
      die(`storage '${id.storage}' does not support content-type '${content}'`)
    if (!findVolume(cluster, vm.node, id)) die(`volume '${drive.file}' does not exist`)
  }
  for (const [key, value] of Object.entries(vm.config)) {
    if (/^net\d+$/.test(key) && parseNet(value).options.bridge === undefined)
      warn(`Interface 'tap${vm.vmid}i${key.slice(3)}' not attached to any bridge.`)
  }
  if (vm.config.args !== undefined) {
    log(`qemu-system-x86_64: ${vm.config.args}: invalid option`)
    die('start failed: QEMU exited with code 1')
  }
}

export function powerOn(cluster: Cluster, vm: Vm): void {
  vm.run = { pid: nodeOf(cluster, vm.node).nextPid++, sinceMs: cluster.clock.now(), qmpstatus: 'running' }
  cluster.guests.boot(vm, vm.boots === 0)
  vm.boots += 1
}

export function powerOff(cluster: Cluster, vm: Vm): void {
  cluster.guests.powerOff(vm.vmid)
  delete vm.run
  vm.config = withPending(vm)
  vm.pending = { set: {}, delete: [] }
  roundSoon(cluster, vm.vmid)
}

/** Source: qemu-server QemuServer.pm vm_stop, _do_vm_stop: a VM that stands still is no error, whatever its lock. */
const stopStages: Program<PowerData>['stages'] = {
  begin: (run) => lockVm(run, 'check'),
  check(run) {
    const vm = present(run)
    if (!vm.run) return end
    checkLock(vm)
    return next('stopped', run.cluster.durations.stopMs)
  },
  stopped(run) {
    powerOff(run.cluster, present(run))
    return end
  },
}

function present({ cluster, node, data }: PowerRun): Vm {
  return (
    vmOn(cluster, node, data.vmid) ??
    die(`unable to find configuration file for VM ${data.vmid} on node '${node}'`)
  )
}

export const stopProgram: Program<PowerData> = { stages: stopStages }

export const shutdownProgram: Program<PowerData> = {
  stages: {
    ...stopStages,
    check(run) {
      const vm = present(run)
      if (!vm.run) return end
      checkLock(vm)
      if (run.cluster.guests.shutDown(vm.vmid)) return next('asked', 1000)
      if (run.cluster.guests.interfaces(vm.vmid)) return next('stopped', run.cluster.durations.shutdownMs)
      return next('silent', 3000)
    },
    asked(run) {
      const { data, cluster } = run
      if (!present(run).run) return end
      data.waitedSeconds = (data.waitedSeconds ?? 0) + 1
      if (data.waitedSeconds >= (data.timeoutSeconds ?? 60)) return next('overdue')
      return cluster.guests.startOf(data.vmid).kind === 'failed' ? next('stopped') : next('asked', 1000)
    },
    silent(run) {
      const monitor = run.cluster.state.version === 8 ? 'qmp' : 'qga'
      run.log(
        `QEMU Guest Agent is not running - VM ${run.data.vmid} ${monitor} command 'guest-ping' failed - got timeout`,
      )
      return next('overdue', (run.data.timeoutSeconds ?? 60) * 1000)
    },
    overdue(run) {
      if (!run.data.forceStop) die('VM quit/powerdown failed - got timeout')
      run.log('VM still running - terminating now with SIGTERM')
      return next('stopped', run.cluster.durations.stopMs)
    },
  },
}
