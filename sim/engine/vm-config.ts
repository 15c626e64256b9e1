import { confMissing, lockOn, lockTimeout, vmLock, vmOn } from './cluster.ts'
import { apply, precheck } from './config-apply.ts'
import { type Change, prepare } from './config-change.ts'
import { type Ctx, type Endpoint, maybeNumber, mustHaveAny, reply, vmidOf } from './endpoint.ts'
import { die } from './errors.ts'
import { anyVmConfig } from './privileges.ts'
import { end, lock, next, type Program } from './program.ts'
import { checkLock } from './vm-lock.ts'
import { sleepThrough } from './wait.ts'

const path = '/nodes/{node}/qemu/{vmid}/config'
const permission = (ctx: Ctx): void => mustHaveAny(ctx, `/vms/${vmidOf(ctx)}`, anyVmConfig)

/** Source: qemu-server API2/Qemu.pm update_vm_api. PUT does it at once, POST in a task. */
export const configEndpoints: Endpoint[] = [
  {
    method: 'PUT',
    path,
    permission,
    async handler(ctx) {
      const change = prepare(ctx)
      await underLock(ctx, () => apply(ctx, change))
      return reply(null)
    },
  },
  {
    method: 'POST',
    path,
    permission,
    async handler(ctx) {
      const change = prepare(ctx)
      const { cluster, node } = ctx
      const vmid = vmidOf(ctx)
      const work = () => {
        const vm = vmOn(cluster, node, vmid) ?? die(confMissing(node, vmid))
        precheck(vm, change)
        return cluster.tasks.fork(node, 'qmconfig', String(vmid), ctx.caller, { ctx: frozen(ctx), change })
      }
      // From qemu-server 9.1.19 on the lock is taken inside the task.
      const upid = cluster.state.version === 9 ? work() : await underLock(ctx, work)
      return reply(
        await sleepThrough(
          cluster,
          upid,
          maybeNumber(ctx, 'background_delay'),
          `failed to update VM ${vmid}: `,
        ),
      )
    },
  },
]

async function underLock<T>(ctx: Ctx, work: () => T): Promise<T> {
  const { cluster, node } = ctx
  const vmid = vmidOf(ctx)
  const file = vmLock(vmid)
  const owner = `call-${cluster.nextCall()}`
  // The rewritten config of 9 is refused by its lock before the file is waited for.
  const vm = vmOn(cluster, node, vmid)
  if (cluster.state.version === 9 && vm) checkLock(vm)
  if (!(await cluster.locks.take(lockOn(node, file), owner, 'exclusive', 10_000))) die(lockTimeout(file))
  try {
    cluster.catchUp()
    return work()
  } finally {
    cluster.locks.release(lockOn(node, file), owner)
  }
}

type ConfigTask = { ctx: Pick<Ctx, 'node' | 'received' | 'caller' | 'params' | 'call'>; change: Change }

/** A context without the cluster, fit to be kept on disk. */
function frozen({ node, received, caller, params, call }: Ctx): ConfigTask['ctx'] {
  const { upload: _, authorization: __, cookie: ___, ...rest } = call
  return { node, received, caller, params, call: rest }
}

export const configProgram: Program<ConfigTask> = {
  stages: {
    begin(run) {
      run.log(run.data.change.log)
      if (run.cluster.state.version !== 9) return next('apply', run.cluster.durations.configMs)
      const file = vmLock(Number(run.data.ctx.params.vmid))
      return lock(lockOn(run.node, file), 'exclusive', 10_000, 'apply', lockTimeout(file))
    },
    apply(run) {
      apply({ ...run.data.ctx, cluster: run.cluster }, run.data.change)
      return end
    },
  },
}
