import { type Engine, type EngineCall, type EngineResult, SimConnectionError } from '../types.ts'
import { isDaemonCall } from './daemon.ts'
import { decodeForm, type Params } from './form.ts'
import { type RequestHead, readContentType, readTarget, type Target } from './head.ts'
import { decodeJson, UnreadableBody } from './json.ts'
import { createUploadReader } from './multipart.ts'
import { bare, formatted, type Reply, refused } from './reply.ts'

/** What a request needs once its head is there. `silence`: pveproxy stumbles and says nothing until the connection times out. */
export type Exchange =
  | { kind: 'reply'; reply: Reply }
  | { kind: 'silence' }
  | { kind: 'body'; bytes: number; finish(body: Uint8Array): Promise<Reply> }
  | { kind: 'upload'; bytes: number; feed(chunk: Uint8Array): Promise<Reply | undefined> }

/** pveproxy closes a connection on which nothing happens. */
export const idleMs = 5000
const maxBodyBytes = 512 * 1024
const unauthorisedDelayMs = 3000
const knownMethods = ['GET', 'POST', 'PUT', 'DELETE']
const uploadPath = /^\/+nodes\/[^/]+\/storage\/[^/]+\/upload$/

/** Takes a request as far as its head allows, in pveproxy's order: method, encoding, identity, content. */
export async function openExchange(engine: Engine, node: string, head: RequestHead): Promise<Exchange> {
  const answer = (reply: Reply): Exchange => ({ kind: 'reply', reply })
  const { method, headers } = head
  if (!knownMethods.includes(method)) return answer(bare(501, `method '${method}' not available`))
  const encoding = headers['transfer-encoding']
  if (encoding) {
    const isChunked = encoding.toLowerCase() === 'chunked'
    const words = isChunked
      ? 'chunked transfer encoding not supported'
      : `Unknown transfer encoding '${encoding}'`
    return answer(refused(501, words))
  }

  const target = readTarget(head.target)
  const isApi = target.path.startsWith('/api2')
  const api = /^\/api2\/+([a-z][a-z0-9]+)(\/.*)?$/.exec(target.rawPath)
  if (isApi && !api) return answer(refused(501, 'no such uri'))
  const [, format = '', path = '/'] = api ?? []
  const call = toCall(node, head, path)
  const isUpload = isApi && method === 'POST' && uploadPath.test(path)
  const bytes = Number.parseInt(headers['content-length'] ?? '', 10) || 0

  // Everything from here on is told only to callers who are known.
  const refuseKnown = async (status: number, words: string): Promise<Reply> => {
    const result = isApi ? await engine.precheckUpload(call) : undefined
    return result?.status === 401 ? delayed(engine, result) : refused(status, words)
  }
  const refuse = async (status: number, words: string) => answer(await refuseKnown(status, words))

  const finish = async (params: Params, upload?: EngineCall['upload']): Promise<Reply> => {
    if (!isApi) return refused(500, `no such file '${target.path}'\n`)
    if (format !== 'json') return refuseKnown(501, `no formatter for uri ${path}, ${format}`)
    delete params._dc
    const whole: EngineCall = { ...call, params, ...(upload && { upload }) }
    const result = await (upload ? patiently(engine, whole) : engine.call(whole))
    const reply = await delayed(engine, result)
    return { ...reply, viaDaemon: isDaemonCall(call), close: reply.close || upload !== undefined }
  }

  const body = (): Exchange => ({
    kind: 'body',
    bytes,
    async finish(content) {
      try {
        return await finish(readParams(head, target, content, engine.version))
      } catch (cause) {
        if (cause instanceof UnreadableBody) return refuseKnown(500, cause.message)
        throw cause
      }
    },
  })

  if (bytes === 0) return body()
  if (method !== 'PUT' && method !== 'POST') return refuse(501, `Unexpected content for method '${method}'`)
  const { type, boundary } = readContentType(headers['content-type'])
  if (isUpload) {
    const result = await engine.precheckUpload(call)
    if (result) return answer(await delayed(engine, result))
    if (type !== 'multipart/form-data' || !boundary) return { kind: 'silence' }
    return openUpload(engine, { boundary, bytes, params: decodeForm(target.query) }, finish)
  }
  if (bytes > maxBodyBytes) return refuse(501, 'for data too large')
  if (type && type !== 'application/x-www-form-urlencoded' && type !== 'application/json') {
    return refuse(506, `upload 'Content-Type '${headers['content-type']}' not implemented`)
  }
  return body()
}

function toCall(node: string, head: RequestHead, path: string): EngineCall {
  const { authorization, cookie } = head.headers
  return {
    node,
    method: head.method,
    path,
    params: {},
    ...(authorization !== undefined && { authorization }),
    ...(cookie !== undefined && { cookie }),
  }
}

type Finish = (params: Params, upload?: EngineCall['upload']) => Promise<Reply>

/** Query over body; only changes have a body that counts. */
function readParams(head: RequestHead, target: Target, content: Uint8Array, version: 8 | 9): Params {
  const query = decodeForm(target.query)
  if (head.method !== 'PUT' && head.method !== 'POST') return query
  const text = Buffer.from(content).toString('utf8')
  const { type } = readContentType(head.headers['content-type'])
  return { ...(type === 'application/json' ? decodeJson(text, version) : decodeForm(text)), ...query }
}

function openUpload(
  engine: Engine,
  upload: { boundary: string; bytes: number; params: Params },
  finish: Finish,
): Exchange {
  const { boundary, bytes, params } = upload
  const read = createUploadReader({ boundary, sizeBytes: bytes, params, version: engine.version })
  return {
    kind: 'upload',
    bytes,
    async feed(chunk) {
      const state = read(chunk)
      if (state.kind === 'more') return undefined
      if (state.kind === 'failed') return refused(500, state.message)
      return finish(state.params, { filename: state.filename, bytes: state.bytes })
    },
  }
}

/**
 * The client of an upload is still held to the five seconds in which something must happen on its connection. When pvedaemon
 * is that busy, the connection ends without an answer and the file is gone before anyone looks at it. Source: captures 22.
 */
function patiently(engine: Engine, call: EngineCall): Promise<EngineResult> {
  return new Promise((resolve, reject) => {
    const callOff = engine.clock.after(idleMs, () => {
      delete call.upload
      reject(new SimConnectionError('ECONNRESET', true, 'connection closed without an answer'))
    })
    engine.call(call).then(resolve, reject).finally(callOff)
  })
}

/** Strangers wait three seconds, and so do callers who may not upload there; neither is told anything in a body. */
async function delayed(engine: Engine, result: EngineResult): Promise<Reply> {
  if (result.status !== 401 && !(result.status === 403 && result.emptyBody)) return formatted(result)
  await engine.clock.sleep(unauthorisedDelayMs)
  return bare(result.status, result.reason ?? result.message)
}
