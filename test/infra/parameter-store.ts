import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Input = {
  Name?: string
  Value?: string
  Type?: string
  Overwrite?: boolean
  KeyId?: string
  WithDecryption?: boolean
}
type Answer = { status?: number; body: object }

/** A parameter as it is kept. */
type Kept = { value: string; type: string; keyId: string; version: number }

/**
 * Just so much of AWS Systems Manager as keeps parameters, on its wire. Source: its API reference, GetParameter, PutParameter,
 * DeleteParameter; errors as they are listed there.
 */
export async function serveParameters(given: ReadonlyMap<string, string> = new Map()) {
  const kept = new Map<string, Kept>(
    [...given].map(([name, value]) => [
      name,
      { value, type: 'SecureString', keyId: 'alias/aws/ssm', version: 1 },
    ]),
  )
  /** Names of operations, in the order they came. */
  const asked: string[] = []
  /** Answered instead of what would be done, to all or to one operation. */
  let refusal: { code: string; operation: string | undefined } | undefined
  /** How many reads to come are of a place that the last write has not come to. */
  let lateReads = 0
  const before = new Map<string, Kept | undefined>()
  let afterWrite: (() => void) | undefined

  const operations: Record<string, (input: Input) => Answer> = {
    GetParameter({ Name = '', WithDecryption = false }) {
      const parameter = lateReads > 0 ? before.get(Name) : kept.get(Name)
      lateReads = Math.max(0, lateReads - 1)
      if (!parameter) return error('ParameterNotFound')
      const { value, type, version } = parameter
      const shown = type === 'SecureString' && !WithDecryption ? 'AQICAHsealed' : value
      return { body: { Parameter: { Name, Type: type, Value: shown, Version: version } } }
    },
    PutParameter({ Name = '', Value = '', Type, Overwrite = false, KeyId }) {
      const old = kept.get(Name)
      if (old && !Overwrite) return error('ParameterAlreadyExists', 'The parameter already exists.')
      if (!old && Type === undefined)
        return error('ValidationException', 'A parameter type is required when you create a parameter.')
      if (!/^\/?[\w.-]+(\/[\w.-]+)*$/.test(Name)) return error('ValidationException', `Invalid name: ${Name}`)
      // As AWS does, it quotes what it refuses.
      if (Value === '' || Value.length > 4096)
        return error('ValidationException', `1 validation error detected: Value '${Value}' at 'value'`)
      const version = (old?.version ?? 0) + 1
      const type = Type ?? old?.type ?? 'String'
      before.set(Name, old)
      kept.set(Name, { value: Value, type, keyId: KeyId ?? 'alias/aws/ssm', version })
      afterWrite?.()
      return { body: { Version: version, Tier: 'Standard' } }
    },
    DeleteParameter: ({ Name = '' }) => (kept.delete(Name) ? { body: {} } : error('ParameterNotFound')),
  }

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const operation = String(request.headers['x-amz-target']).split('.')[1] ?? ''
    asked.push(operation)
    const input: Input = JSON.parse(Buffer.concat(chunks).toString())
    const signed = /^AWS4-HMAC-SHA256 /.test(request.headers.authorization ?? '')
    const { status = 200, body } = !signed
      ? error('MissingAuthenticationToken')
      : refusal && (refusal.operation ?? operation) === operation
        ? error(refusal.code, `not with ${input.Value}`)
        : (operations[operation]?.(input) ?? error('UnknownOperationException'))
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    // A server that listens on TCP has an address with a port.
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    kept,
    asked,
    refuseWith: (code: string | undefined, operation?: string) => {
      refusal = code === undefined ? undefined : { code, operation }
    },
    /** The next reads find what stood there before the last write. */
    readLate: (times: number) => {
      lateReads = times
    },
    /** Done right after each write, as somebody else would. */
    afterWrite: (act: () => void) => {
      afterWrite = act
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const error = (code: string, message = ''): Answer => ({ status: 400, body: { __type: code, message } })
