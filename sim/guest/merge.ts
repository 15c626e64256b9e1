/** A YAML document as it comes out of the parser. */
export type Yaml = null | string | number | boolean | Yaml[] | { [key: string]: Yaml }
export type YamlMap = { [key: string]: Yaml }

/** How each kind of value is merged: the options in the brackets of `list(append)+dict(recurse_array)+str()`. */
export type MergeHow = { list: string[]; dict: string[]; str: string[] }

/** Between the cloud-configs of one document: a later key replaces an earlier one. */
export const replaceKeys: MergeHow = { list: [], dict: ['replace'], str: [] }

/** Between user-data and vendor-data: what is there stays, maps are completed. */
export const keepKeys: MergeHow = { list: [], dict: [], str: [] }

/** Reads `merge_how` in both of its spellings; `undefined` when it is not given or not understood. */
export function readMergeHow(value: Yaml | undefined): MergeHow | undefined {
  const how: MergeHow = { list: [], dict: [], str: [] }
  const pairs: [string, string[]][] = []
  if (typeof value === 'string') {
    for (const item of value.toLowerCase().split('+')) {
      const [, name = '', options = ''] = /^\s*([a-z_]+)\((.*?)\)\s*$/.exec(item.replaceAll('-', '_')) ?? []
      pairs.push([name, options.split(',').map((option) => option.trim())])
    }
  } else if (Array.isArray(value)) {
    for (const item of value) {
      if (!isMap(item)) return undefined
      const settings = Array.isArray(item.settings) ? item.settings.map(String) : []
      pairs.push([String(item.name), settings])
    }
  } else return undefined
  for (const [name, options] of pairs) {
    if (name !== 'list' && name !== 'dict' && name !== 'str') return undefined
    how[name] = options.filter((option) => option !== '')
  }
  return how
}

/** Merges one value into another as cloud-init's mergers do. Source: cloud-init 22.4, mergers/m_{dict,list,str}.py. */
export function merge(base: Yaml, added: Yaml, how: MergeHow): Yaml {
  if (isMap(base)) return isMap(added) ? mergeMaps(base, added, how) : base
  if (Array.isArray(base)) return mergeLists(base, added, how)
  if (typeof base === 'string' && typeof added === 'string')
    return how.str.includes('append') ? base + added : added
  // Numbers and the like have no merger: what was there first stays.
  return typeof base === 'string' ? added : base
}

function mergeMaps(base: YamlMap, added: YamlMap, how: MergeHow): YamlMap {
  const result: YamlMap = { ...base }
  for (const [key, value] of Object.entries(added)) {
    const old = base[key]
    if (old === undefined) result[key] = value
    else if (value === null && how.dict.includes('allow_delete')) delete result[key]
    else if (how.dict.includes('replace')) result[key] = value
    else if (isMap(value) || goesDeeper(value, how.dict)) result[key] = merge(old, value, how)
  }
  return result
}

function mergeLists(base: Yaml[], added: Yaml, how: MergeHow): Yaml {
  if (!Array.isArray(added)) return methodOf(how.list) === 'replace' ? added : base
  switch (methodOf(how.list)) {
    case 'append':
      return [...base, ...added]
    case 'prepend':
      return [...added, ...base]
    case 'no_replace':
      return base
    default:
      // Index by index: a shorter list replaces the beginning only.
      return base.map((old, index) => {
        const value = added[index]
        if (value === undefined) return old
        const isDeep = goesDeeper(value, how.list) || (isMap(value) && how.list.includes('recurse_dict'))
        return isDeep ? merge(old, value, how) : value
      })
  }
}

function methodOf(options: string[]): string {
  return (
    ['append', 'prepend', 'replace', 'no_replace'].find((method) => options.includes(method)) ?? 'replace'
  )
}

function goesDeeper(value: Yaml, options: string[]): boolean {
  if (Array.isArray(value)) return options.includes('recurse_array') || options.includes('recurse_list')
  return typeof value === 'string' && options.includes('recurse_str')
}

export function isMap(value: Yaml | undefined): value is YamlMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
