import { createHash } from 'node:crypto'
import * as z from 'zod'
import { Range, wanted } from './wanted.ts'

/** A publisher's own name for one proxy, for ever: it stands in file names, so it is its own normal form everywhere. */
export const Uid = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, wanted('1 to 63 of a-z 0-9 . _ - and a letter or digit first'))

/** How a person calls the proxy; becomes part of the VM's name, so a DNS label. */
export const ProxyName = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/,
    wanted('1 to 63 letters, digits and inner hyphens (no underscore, no dot)'),
  )

export const Port = z
  .int(wanted('a port, 1 to 65535'))
  .min(1, wanted('a port, 1 to 65535'))
  .max(65535, wanted('a port, 1 to 65535'))

const count = (min: number, max: number, unit: string) => {
  const text = wanted(`a whole number of ${unit}, ${min} to ${max}`)
  return z.int(text).min(min, text).max(max, text)
}

export const Size = z.strictObject({
  cores: count(1, 128, 'cores'),
  memoryMiB: count(128, 1_048_576, 'MiB'),
  diskGiB: count(1, 65_536, 'GiB'),
})
export type Size = z.infer<typeof Size>

const Auth = z.strictObject({
  /** The alphabet is the proxy program's (tinyproxy's BasicAuth takes no other characters). */
  username: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, wanted('1 to 64 of A-Z a-z 0-9 . _ -')),
  /** Name of a stored secret, never the secret. */
  passwordParameter: z.string().regex(/^[A-Za-z0-9/._-]{1,512}$/, wanted('the name of a stored parameter')),
})

export const ProxySettings = z.strictObject({
  protocol: z.literal('http', wanted('http')),
  port: Port,
  allow: z
    .array(Range, wanted('a list of address ranges'))
    .min(1, wanted('at least one address range: an empty list would let nobody in'))
    .max(256, wanted('at most 256 address ranges')),
  auth: Auth.optional(),
})
export type ProxySettings = z.infer<typeof ProxySettings>

export const Labels = z
  .record(z.string().regex(/^[A-Za-z0-9._/-]{1,63}$/), z.string().max(255))
  .refine((labels) => Object.keys(labels).length <= 32, wanted('at most 32 labels'))

/** UTF-8 bytes: a seed and its row stay small, and SQS takes 1 MiB for all of it. */
export const MAX_USER_DATA_BYTES = 16 * 1024

/** What a publisher asks for. Everything but zone and image falls back to the configuration's `defaults`. */
export const Spec = z.strictObject({
  zone: z.string().min(1),
  image: z.string().min(1),
  size: Size.partial().optional(),
  proxy: ProxySettings.partial().optional(),
  userData: z
    .string()
    .refine(
      (text) => Buffer.byteLength(text) <= MAX_USER_DATA_BYTES,
      wanted(`at most ${MAX_USER_DATA_BYTES} bytes of UTF-8`),
    )
    .optional(),
  ttlSeconds: count(60, 315_360_000, 'seconds').optional(),
  labels: Labels.optional(),
})
export type Spec = z.infer<typeof Spec>

/** A spec with every default filled in and without `userData`, which lives in an item of its own. */
export const FullSpec = z.strictObject({
  zone: z.string(),
  image: z.string(),
  size: Size,
  proxy: ProxySettings,
  hasUserData: z.boolean(),
  ttlSeconds: z.int().optional(),
  labels: Labels.optional(),
})
export type FullSpec = z.infer<typeof FullSpec>

/** SHA-256 (hex) of a name and spec as published, whatever the order of their keys. A change of defaults does not change it. */
export function hashSpec(name: string, spec: Spec): string {
  return createHash('sha256').update(canonical({ name, spec })).digest('hex')
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}
