import type { Machine } from '../../sim/qemu/machine.ts'
import { until } from './real-life.ts'

/** Runs a line of shell in the guest, by its agent, and gives what it printed. @throws {Error} when it fails */
export async function inside(machine: Machine, line: string): Promise<string> {
  const { status, output } = await tryInside(machine, line)
  if (status !== 0) throw new Error(`${line}: status ${status}\n${output}`)
  return output
}

export async function tryInside(machine: Machine, line: string): Promise<{ status: number; output: string }> {
  const started = await ask(machine, 'guest-exec', {
    path: '/bin/sh',
    arg: ['-c', `exec 2>&1; ${line}`],
    'capture-output': true,
  })
  let result: Record<string, unknown> = {}
  await until(`the end of ${line}`, async () => {
    result = await ask(machine, 'guest-exec-status', { pid: started.pid })
    return result.exited === true
  })
  return {
    status: Number(result.exitcode ?? -1),
    output: Buffer.from(String(result['out-data'] ?? ''), 'base64').toString(),
  }
}

async function ask(machine: Machine, command: string, args: object): Promise<Record<string, unknown>> {
  const answer = await machine.agent.ask(command, args, 60_000)
  if (!answer) throw new Error(`the agent did not answer ${command}`)
  if ('error' in answer) throw new Error(`${command}: ${answer.error.desc}`)
  return { ...Object(answer.return) }
}

/** Waits for cloud-init to end, and gives its own verdict. */
export async function cloudInitEnd(machine: Machine) {
  await machine.agentUp
  await tryInside(machine, 'cloud-init status --wait')
  const status = JSON.parse((await tryInside(machine, 'cloud-init status --long --format json')).output)
  const complaints = await tryInside(
    machine,
    "grep -iE '\\[(WARNING|ERROR|CRITICAL|DEPRECATED)\\]' /var/log/cloud-init.log",
  )
  return { status: String(status.status), errors: status.errors as unknown[], complaints: complaints.output }
}
