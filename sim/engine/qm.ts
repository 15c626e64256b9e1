import { type Cluster, confMissing, isQuorate, vmOn } from './cluster.ts'
import { apply } from './config-apply.ts'
import { prepare } from './config-change.ts'
import { isDriveSlot } from './drives.ts'
import type { Ctx } from './endpoint.ts'
import { die, PveError } from './errors.ts'
import { checkHa, haTask } from './ha.ts'
import { migrate } from './migrate.ts'
import { diskSizeOf, memoryOf } from './pvestatd.ts'
import { confText, digestOf } from './state.ts'

/** `upid` of the task that it began, which is at work still. */
export type QmResult = { exitCode: number; stdout: string; stderr: string; upid?: string }

export type Args = { words: string[]; options: Record<string, string> }

/** `qm` as root of a host types it. Tasks run on by the clock; the call tells only whether it began. */
export function qm(cluster: Cluster, node: string, argv: string[]): QmResult {
  const [command = '', ...rest] = argv
  const run = commands[command]
  if (!run) return { exitCode: 255, stdout: '', stderr: `ERROR: unknown command 'qm ${command}'\n` }
  return answered(cluster, () => run(cluster, node, parseArgv(rest)))
}

/** Runs a command on the cluster as it is now; what Proxmox dies with comes out as a shell shows it. */
export function answered(cluster: Cluster, run: () => string | { upid: string }): QmResult {
  try {
    cluster.catchUp()
    const said = run()
    cluster.commit()
    return { exitCode: 0, stdout: '', stderr: '', ...(typeof said === 'string' ? { stdout: said } : said) }
  } catch (error) {
    if (!(error instanceof PveError)) throw error
    const details = Object.entries(error.errors ?? {}).map(([key, text]) => `${key}: ${text}\n`)
    return {
      exitCode: error.status === 400 ? 255 : 2,
      stdout: '',
      stderr: `${error.message}\n${details.join('')}`,
    }
  }
}

/** `--name value`, `-name value`, `--name=value`; an option without a value counts as 1. */
export function parseArgv(argv: string[]): Args {
  const args: Args = { words: [], options: {} }
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? ''
    const [, name, , value] = /^--?([a-z][\w-]*)(=(.*))?$/s.exec(word) ?? []
    const following = argv[index + 1]
    if (name === undefined) args.words.push(word)
    else if (value !== undefined) args.options[name] = value
    else if (following === undefined || /^--?[a-z]/.test(following)) args.options[name] = '1'
    else {
      args.options[name] = following
      index += 1
    }
  }
  return args
}

type Command = (cluster: Cluster, node: string, args: Args) => string | { upid: string }

const commands: Record<string, Command> = {
  list(cluster, node) {
    const head = '      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID       \n'
    const rows = Object.values(cluster.state.vms)
      .filter((vm) => vm.node === node && !vm.container)
      .map((vm) => {
        const name = String(vm.config.name ?? `VM ${vm.vmid}`).padEnd(20)
        const memory = String(memoryOf(vm) / 1024 ** 2).padEnd(10)
        const disk = (diskSizeOf(vm) / 1024 ** 3).toFixed(2).padStart(12)
        const status = (vm.run ? 'running' : 'stopped').padEnd(10)
        return `${String(vm.vmid).padStart(10)} ${name} ${status} ${memory} ${disk} ${String(vm.run?.pid ?? 0).padEnd(10)}\n`
      })
    return rows.length > 0 ? head + rows.join('') : ''
  },
  config(cluster, node, args) {
    return confText(theVm(cluster, node, args))
      .replace(/^#(.*)$/gm, (_, line: string) => `description: ${line}`)
      .split('\n\n')[0] as string
  },
  status(cluster, node, args) {
    return `status: ${theVm(cluster, node, args).run ? 'running' : 'stopped'}\n`
  },
  unlock(cluster, node, args) {
    if (!isQuorate(cluster, node)) die('cluster not ready - no quorum?')
    delete theVm(cluster, node, args).config.lock
    return ''
  },
  set(cluster, node, { words, options }) {
    const vm = theVm(cluster, node, { words, options })
    const { delete: gone, digest, ...values } = options
    if (digest !== undefined && digest !== digestOf(vm)) die('checksum mismatch (file change by other user?)')
    for (const key of gone?.split(',') ?? []) delete vm.config[key]
    const drives: Record<string, string> = {}
    for (const [key, value] of Object.entries(values)) {
      if (!cluster.options.has(key)) throw new PveError(400, `Unknown option: ${key}`)
      if (isDriveSlot(key)) drives[key] = value
      else vm.config[key] = value
    }
    if (Object.keys(drives).length > 0) setDrives(cluster, node, vm.vmid, drives)
    const removed = gone === undefined ? '' : `-delete ${gone} `
    return `update VM ${vm.vmid}: ${removed}${Object.entries(values)
      .map(([key, value]) => `-${key} ${value}`)
      .join(' ')}\n`
  },
  migrate(cluster, node, args) {
    migrate(cluster, theVm(cluster, node, args), args.words[1] ?? '')
    return ''
  },
  start: fork('qmstart', () => ({})),
  stop: fork('qmstop', () => ({})),
  shutdown: fork('qmshutdown', ({ options }) => ({
    timeoutSeconds: Number(options.timeout ?? 60),
    forceStop: options.forceStop === '1',
  })),
  destroy: fork(
    'qmdestroy',
    ({ options }) => ({
      purge: options.purge === '1',
      unreferenced: options['destroy-unreferenced-disks'] === '1',
    }),
    (cluster, node, args) => {
      const vm = theVm(cluster, node, args)
      if (vm.run) die(`VM ${vm.vmid} is running - destroy failed`)
      if (Number(vm.config.protection ?? 0) === 1) die(`can't remove VM ${vm.vmid} - protection mode enabled`)
      if (args.options.purge !== '1') checkHa(cluster, vm.vmid)
      if (args.options.skiplock === '1') delete vm.config.lock
    },
  ),
}

/** A drive is put in and taken out as through the API. */
function setDrives(cluster: Cluster, node: string, vmid: number, drives: Record<string, string>): void {
  const params = { node, vmid, ...drives }
  const call = { node, method: 'PUT', path: '', params }
  const ctx: Ctx = { cluster, node, received: node, caller: 'root@pam', params, call }
  apply(ctx, prepare(ctx))
}

function fork(
  type: string,
  data: (args: Args) => object,
  before?: (cluster: Cluster, node: string, args: Args) => void,
): Command {
  return (cluster, node, args) => {
    before?.(cluster, node, args)
    const vmid = vmidOf(args)
    const run = { vmid, ...data(args) }
    return { upid: cluster.tasks.fork(node, haTask(cluster, vmid, type), String(vmid), 'root@pam', run) }
  }
}

function vmidOf({ words }: Args): number {
  const word = words[0] ?? ''
  if (!/^[1-9]\d{2,8}$/.test(word))
    throw new PveError(400, '400 Parameter verification failed.', {
      vmid: 'invalid format - value does not look like a valid VM ID',
    })
  return Number(word)
}

function theVm(cluster: Cluster, node: string, args: Args) {
  const vmid = vmidOf(args)
  return vmOn(cluster, node, vmid) ?? die(confMissing(node, vmid))
}
