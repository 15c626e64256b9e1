import type { AgentInterface } from '../types.ts'
import { theVm } from './api-vms.ts'
import { type Ctx, type Endpoint, mustHave, mustHaveAny, reply, text, vmidOf, vmParams } from './endpoint.ts'
import { die } from './errors.ts'
import { isAgentEnabled } from './guests.ts'
import type { Vm } from './state.ts'

const agentQuestions = ['network-get-interfaces', 'get-osinfo', 'get-host-name', 'get-time', 'info'] as const

export const agentEndpoints: Endpoint[] = build()

function build(): Endpoint[] {
  const path = '/nodes/{node}/qemu/{vmid}/agent'
  const daemon = { proxied: true, protected: true, parameters: vmParams }
  const ask = (command: string) => (ctx: Ctx) => agentAnswer(ctx, command)
  return [
    {
      method: 'GET',
      path,
      proxied: true,
      parameters: vmParams,
      permission: (ctx) => mustHave(ctx, `/vms/${vmidOf(ctx)}`, 'VM.Audit'),
      handler: () => reply(agentQuestions.map((name) => ({ name }))),
    },
    {
      method: 'POST',
      path,
      ...daemon,
      parameters: { ...vmParams, command: { type: 'string' } },
      permission: (ctx) => agentPermission(ctx, ['VM.GuestAgent.Unrestricted', 'VM.GuestAgent.Unrestricted']),
      handler: (ctx) => agentAnswer(ctx, text(ctx, 'command')),
    },
    ...agentQuestions.map((command) => ({
      method: 'GET',
      path: `${path}/${command}`,
      ...daemon,
      permission: (ctx: Ctx) => agentPermission(ctx, ['VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted']),
      handler: ask(command),
    })),
    {
      method: 'POST',
      path: `${path}/ping`,
      ...daemon,
      permission: (ctx) => agentPermission(ctx, ['VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted']),
      handler: ask('ping'),
    },
    {
      method: 'POST',
      path: `${path}/exec`,
      ...daemon,
      parameters: {
        ...vmParams,
        command: { type: 'string' },
        'input-data': { type: 'string', optional: true },
      },
      permission: (ctx) => agentPermission(ctx, ['VM.GuestAgent.Unrestricted']),
      handler: ask('exec'),
    },
  ]
}

function agentPermission(ctx: Ctx, privileges9: string[]): void {
  const path = `/vms/${vmidOf(ctx)}`
  if (ctx.cluster.state.version === 8) mustHave(ctx, path, 'VM.Monitor')
  else mustHaveAny(ctx, path, privileges9)
}

const silent = 'QEMU guest agent is not running'

/** A silent agent keeps the worker for 3 s, a hanging command for 5. Source: qemu-server Agent.pm, QMPClient.pm. */
async function agentAnswer(ctx: Ctx, command: string) {
  const { cluster, call } = ctx
  const vm = theVm(ctx)
  if (!vm.run) die(`VM ${vm.vmid} is not running`)
  if (vm.config.agent === undefined) die('No QEMU guest agent configured')
  if (!isAgentEnabled(vm)) die(silent)
  const fault = cluster.faults.forAgent(call)?.effect
  if (fault?.kind === 'agentError') return reply({ result: { error: fault.error } })
  if (fault?.kind === 'agentHangs') {
    await cluster.clock.sleep(5000)
    const monitor = cluster.state.version === 8 ? 'qmp' : 'qga'
    die(`VM ${vm.vmid} ${monitor} command 'guest-${command}' failed - got timeout`)
  }
  const real = await cluster.guests.ask(vm.vmid, `guest-${command}`)
  if (real) return reply(real)
  const interfaces = cluster.guests.interfaces(vm.vmid)
  if (!interfaces) {
    await cluster.clock.sleep(3000)
    die(silent)
  }
  return reply({ result: answerTo(command, interfaces, vm) })
}

function answerTo(command: string, interfaces: AgentInterface[], vm: Vm): unknown {
  if (command === 'network-get-interfaces') return interfaces
  if (command === 'ping') return {}
  if (command === 'get-osinfo') return { id: 'debian', name: 'Debian GNU/Linux' }
  if (command === 'get-host-name') return { 'host-name': String(vm.config.name ?? `VM ${vm.vmid}`) }
  return { error: { class: 'CommandNotFound', desc: `The command guest-${command} has not been found` } }
}
