import { problem } from './answer.ts'
import { AgentAddressAnswer, AgentInterfaceAnswer } from './answers.ts'
import type { Api } from './api.ts'
import { calls } from './calls.ts'
import type { AgentInterface, Vm } from './vm.ts'

const maxInterfaces = 64
const maxAddresses = 64

/**
 * What the guest's agent lists. The guest is not ours to trust: what does not look right is left out, and no more than
 * a decent number is looked at. @throws {ProxmoxError} AgentError, which Proxmox passes on inside a 200
 */
export function readInterfaces(vm: Vm, { result }: Awaited<ReturnType<Api['interfaces']>>): AgentInterface[] {
  if (Array.isArray(result)) return result.slice(0, maxInterfaces).flatMap(readInterface)
  const { class: kind = 'GenericError', desc = 'no words' } = result.error
  const fields = { code: 'AgentError', status: 200, sent: 'yes' } as const
  throw problem({ spec: calls.interfaces, path: vm }, fields, `the agent says ${kind}: ${desc}`)
}

function readInterface(given: unknown): AgentInterface[] {
  const parsed = AgentInterfaceAnswer.safeParse(given)
  if (!parsed.success) return []
  const { name, 'hardware-address': mac, 'ip-addresses': addresses = [] } = parsed.data
  return [
    {
      name,
      ...(mac === undefined ? {} : { mac: mac.toLowerCase() }),
      addresses: addresses.slice(0, maxAddresses).flatMap((address) => {
        const read = AgentAddressAnswer.safeParse(address)
        if (!read.success) return []
        const { 'ip-address': text, 'ip-address-type': family, prefix } = read.data
        return [{ address: text, family, prefix }]
      }),
    },
  ]
}
