import { createApi } from './api.ts'
import type { Proxmox, ProxmoxOptions } from './options.ts'
import { createProvider } from './provider.ts'
import { createProveHolding } from './quorum.ts'
import { type Bounds, createTransport } from './transport.ts'

/** A client for one cluster. @throws {TypeError} for endpoints that are no https URLs or have no proper fingerprint */
export function createProxmox(options: ProxmoxOptions): Proxmox {
  const transport = createTransport(options)
  const proveHolding = createProveHolding()
  const apiWithin = (bounds: Bounds) => createApi((call) => transport.send(call, bounds))
  return {
    with: (invocation) =>
      createProvider(
        apiWithin(invocation),
        () => transport.endpoints().map((endpoint) => apiWithin({ ...invocation, endpoint })),
        proveHolding,
      ),
    close: () => transport.close(),
  }
}
