import { problem } from './answer.ts'
import { AgentAddressAnswer, AgentInterfaceAnswer } from './answers.ts'
import type { Api } from './api.ts'
import { calls } from './calls.ts'
import type { AgentInterface, Vm } from './vm.ts'

const maxInterfaces = 64
const maxAddresses = 64

/**
 * What the guest's agent lists. The guest is not ours to trust: what does not look right is left out, no more than
 * a decent number is looked at, and its own words are not repeated: it knows the proxy's password, and says what it likes.
 * @throws {ProxmoxError} AgentError, which Proxmox passes on inside a 200
 */
export function readInterfaces(vm: Vm, { result }: Awaited<ReturnType<Api['interfaces']>>): AgentInterface[] {
  if (Array.isArray(result)) return result.slice(0, maxInterfaces).flatMap(readInterface)
  const { desc = '' } = result.error
  const known = refusals.find((refusal) => desc.startsWith(refusal))
  const fields = { code: 'AgentError', status: 200, sent: 'yes' } as const
  const text =
    known ?? `an error of its own; \`qm agent ${vm.vmid} network-get-interfaces\` on its node shows it`
  throw problem({ spec: calls.interfaces, path: vm }, fields, `the agent says: ${text}`)
}

// What qemu-ga says itself. Source: qemu qga/main.c, qapi/qmp-dispatch.c, qga/commands.c.
const refusals = [
  'The command guest-network-get-interfaces has not been found',
  'The command guest-network-get-interfaces has been disabled',
  'Command guest-network-get-interfaces has been disabled',
  'this feature or command is not currently supported',
]

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
