internal import TrebuchetWire

/// A recorded snapshot of a state and the patches that lead to a later version.
struct StateHistory: Sendable {
    let stream: String
    /// The number of the version that the patches lead to.
    let number: UInt64
    let value: [UInt8]
    let patches: [[UInt8]]

    /// The value after all patches; nil if they do not apply or the value exceeds the size limit.
    var latestValue: [UInt8]? {
        try? patches.reduce(value) { value, patch in
            try value.withUnsafeBytes { document in
                try patch.withUnsafeBytes {
                    try JSONPatch.apply($0, to: document, maximumBytes: InspectorStateSubscription.longest)
                }
            }
        }
    }
}
