import { parseDocument, type Tags } from 'yaml'
import type { Yaml } from './merge.ts'

const options = { version: '1.1', uniqueKeys: false, logLevel: 'error', customTags: withoutLetters } as const

/**
 * YAML 1.1 as PyYAML's safe loader reads it: `yes` is true, `0644` is octal, the last of equal keys counts; but `y` is a
 * letter, and a tag it does not know is an error. `undefined`, and a line in the log, when it cannot be read.
 */
export function readYaml(bytes: Uint8Array, name: string, log: (line: string) => void): Yaml | undefined {
  const document = parseDocument(Buffer.from(bytes).toString('utf8'), options)
  const fault = document.errors[0] ?? document.warnings.find(({ code }) => code === 'TAG_RESOLVE_FAILED')
  try {
    if (fault) throw fault
    // The parser builds plain values only; JSON.parse would promise as little.
    return document.toJS() as Yaml
  } catch (cause) {
    const words = cause instanceof Error ? cause.message.split('\n')[0] : String(cause)
    log(`cloud-init: failed loading yaml blob of ${name}: ${words}`)
    return undefined
  }
}

function withoutLetters(tags: Tags): Tags {
  return tags.map((tag) => {
    if (typeof tag !== 'object' || tag.collection || tag.tag !== 'tag:yaml.org,2002:bool') return tag
    const isTrue = tag.test?.test('true') ?? false
    return {
      ...tag,
      test: isTrue ? /^(?:[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$/ : /^(?:[Nn]o|NO|[Ff]alse|FALSE|[Oo]ff|OFF)$/,
    }
  })
}
