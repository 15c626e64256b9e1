import type { Endpoint } from './options.ts'

const memoryMs = 30_000

/** The order in which to try endpoints: the node's own first, those that failed of late last. */
export function createEndpoints(endpoints: readonly Endpoint[], now: () => number) {
  const badUntil = new Map<string, number>()
  const isBad = ({ url }: Endpoint) => (badUntil.get(url) ?? 0) > now()

  return {
    inOrder(node?: string): Endpoint[] {
      const rank = (endpoint: Endpoint) =>
        (isBad(endpoint) ? 2 : 0) + (node !== undefined && endpoint.node === node ? 0 : 1)
      return [...endpoints].sort((a, b) => rank(a) - rank(b))
    },
    failed(endpoint: Endpoint): void {
      badUntil.set(endpoint.url, now() + memoryMs)
    },
    answered(endpoint: Endpoint): void {
      badUntil.delete(endpoint.url)
    },
  }
}

/** Refuses at once what could never be safe or never work. @throws {TypeError} */
export function checkEndpoints(endpoints: readonly Endpoint[]): void {
  if (endpoints.length === 0) throw new TypeError('endpoints: at least one is needed')
  for (const { url, fingerprint } of endpoints) {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (parsed?.protocol !== 'https:') throw new TypeError(`endpoints: ${url} is not an https URL`)
    if (parsed.username !== '' || parsed.password !== '')
      throw new TypeError('endpoints: a URL holds no credentials')
    if (fingerprint !== undefined && !/^[0-9a-f]{2}(?::?[0-9a-f]{2}){31}$/i.test(fingerprint)) {
      throw new TypeError(`endpoints: ${fingerprint} is not a SHA-256 fingerprint`)
    }
  }
}
