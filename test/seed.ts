import fc from 'fast-check'

// The same properties are tried with the same values each time, so that a red run is about a change; another seed tries others.
fc.configureGlobal({ seed: Number(process.env.FUZZ_SEED ?? 20261201) })
