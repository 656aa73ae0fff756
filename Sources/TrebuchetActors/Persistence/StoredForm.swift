internal import TrebuchetWire

/// What a store has of a state: a value, as earlier versions of the program wrote it, or a log.
enum StoredForm: Sendable {
    case value([UInt8])
    case log(StoredLog)

    /// The value in JSON, with all changes.
    func text() throws -> [UInt8] {
        guard case .log(let log) = self else {
            guard case .value(let text) = self else { return [] }
            return text
        }
        // As one patch: a large value is taken apart and put together once.
        var patch: [UInt8] = []
        for entry in log.entries where entry.bytes.count > 2 {
            patch.append(UInt8(ascii: patch.isEmpty ? "[" : ","))
            patch += entry.bytes.dropFirst().dropLast()
        }
        guard !patch.isEmpty else { return log.snapshot.bytes }
        patch.append(UInt8(ascii: "]"))
        return try patch.withUnsafeBytes { patch in
            try log.snapshot.bytes.withUnsafeBytes { value in
                // Written by this program, so its work has no limit but its length.
                try JSONPatch.apply(patch, to: value, maximumBytes: .max / 2, workLimit: .max)
            }
        }
    }

    var log: StoredLog? { if case .log(let log) = self { log } else { nil } }
}
