import * as z from 'zod'
import { parseUpid } from './upid.ts'

// Perl does not tell a number from a string of digits, so neither do we; false booleans are often just not there, and
// what a token may not see is left out. Unknown fields are ignored: every release adds some.
const number = z
  .union([
    z.number(),
    z
      .string()
      .max(30)
      .regex(/^-?\d+(?:\.\d+)?$/),
  ])
  .transform(Number)
// Names and states go on into rows, reports and messages, which hold little: what is much longer than any of Proxmox's is none.
const name = z.string().max(255)
const text = z.union([z.string(), z.number()]).transform((value) => String(value).slice(0, 8192))
const flag = z
  .union([z.boolean(), z.literal([0, 1, '0', '1', ''])])
  .nullish()
  .transform((value) => value === true || value === 1 || value === '1')
const list = text
  .nullish()
  .transform((value) => new Set((value ?? '').split(/[,;\s\0]+/).filter((part) => part !== '')))
const tags = list.transform((set): ReadonlySet<string> => new Set([...set].map((tag) => tag.toLowerCase())))
const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? undefined)

export const Nothing = z.unknown().transform(() => undefined)
export const UpidAnswer = z.string().refine((value) => parseUpid(value) !== undefined, 'not a UPID')
export const MaybeUpid = optional(UpidAnswer)

export const VersionAnswer = z.object({ version: name, release: optional(text) })
export const NextIdAnswer = text
export const PermissionsAnswer = z.record(z.string(), z.record(z.string(), z.unknown()))
export const NodesAnswer = z.array(z.object({ node: name, status: optional(name) }))

export const ClusterStatusAnswer = z.array(z.object({ type: name, name, quorate: flag, online: flag }))

/** Expiries are in epoch seconds; 0 is never. */
export const UsersAnswer = z.array(
  z.object({
    userid: name,
    expire: optional(number),
    tokens: z
      .array(z.object({ tokenid: name, expire: optional(number) }))
      .nullish()
      .transform((tokens) => tokens ?? []),
  }),
)

export const PoolsAnswer = z.array(z.object({ poolid: name }))

export const TimeAnswer = z.object({ time: number })

export const BridgesAnswer = z.array(z.object({ iface: name, type: optional(name), active: flag }))

export const CertificatesAnswer = z.array(
  z.object({
    filename: optional(name),
    fingerprint: optional(name),
    notafter: optional(number),
  }),
)

/** Of each guest only what is true at once: the rest of this list lags, or is an earlier VM's. */
export const ResourcesAnswer = z.array(
  z.object({
    type: name,
    vmid: optional(number),
    node: optional(name),
    lock: optional(name),
    tags,
    pool: optional(name),
  }),
)

/** Options as text. What is not a plain value, or longer than any file of Proxmox's may be, has no place in a configuration. */
export const ConfigAnswer = z.record(z.string(), z.unknown()).transform((options, context) => {
  const raw = Object.fromEntries(
    Object.entries(options).flatMap(([name, value]) =>
      (typeof value === 'string' && value.length <= 65_536) || typeof value === 'number'
        ? [[name, String(value)]]
        : [],
    ),
  )
  const { digest } = raw
  if (digest !== undefined) return { ...raw, digest }
  context.addIssue({ code: 'custom', path: ['digest'], message: 'missing' })
  return z.NEVER
})

export const VmStatusAnswer = z.object({
  status: name,
  qmpstatus: optional(name),
  lock: optional(name),
})

export const TaskStatusAnswer = z.object({
  status: z.enum(['running', 'stopped']),
  exitstatus: optional(text),
})

export const TasksAnswer = z.array(
  z.object({
    upid: name,
    node: name,
    type: name,
    id: text,
    starttime: number,
    status: optional(text),
    endtime: optional(number),
  }),
)

export const StoragesAnswer = z.array(
  z.object({
    storage: name,
    type: name,
    content: list,
    enabled: flag,
    active: flag,
    shared: flag,
    total: optional(number),
    avail: optional(number),
  }),
)

export const VolumesAnswer = z.array(
  z.object({
    volid: z.string().max(1024),
    content: optional(name),
    format: optional(name),
    size: optional(number),
    vmid: optional(number),
  }),
)

/** What the guest says, which is not to be trusted: its parts are judged one by one where they are used. */
export const InterfacesAnswer = z.object({
  result: z.union([
    z.array(z.unknown()),
    z.object({ error: z.object({ class: optional(text), desc: optional(text) }) }),
  ]),
})

export const AgentInterfaceAnswer = z.object({
  name: z.string().min(1).max(256),
  'hardware-address': z.string().max(64).optional().catch(undefined),
  'ip-addresses': z.array(z.unknown()).optional().catch(undefined),
})

export const AgentAddressAnswer = z.object({
  'ip-address': z.string().min(2).max(64),
  'ip-address-type': z.enum(['ipv4', 'ipv6']),
  prefix: number,
})
