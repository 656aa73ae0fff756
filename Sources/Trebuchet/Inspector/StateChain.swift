internal import TrebuchetWire

/// A value of a state that was kept whole, and the differences that lead on from it.
struct StateChain: Sendable {
    let stream: String
    /// Of the version that they lead to.
    let number: UInt64
    let value: [UInt8]
    let patches: [[UInt8]]

    /// The value that they lead to; nil when they do not fit, or it is longer than is kept.
    var made: [UInt8]? {
        try? patches.reduce(value) { value, patch in
            try value.withUnsafeBytes { document in
                try patch.withUnsafeBytes {
                    try JSONPatch.apply($0, to: document, maximumBytes: StateWatch.longest)
                }
            }
        }
    }
}
