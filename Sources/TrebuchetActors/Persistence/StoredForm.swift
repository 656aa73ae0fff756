internal import TrebuchetWire

/// What a store has of a state: a value, as earlier versions of the program wrote it, or a log.
enum StoredForm: Sendable {
    case value([UInt8])
    case log(StoredLog)

    /// The value with all changes.
    func state() throws -> StoredState {
        switch self {
        case .value(let bytes): StoredState(bytes)
        case .log(let log): try Self.state(of: log)
        }
    }

    private static func state(of log: StoredLog) throws -> StoredState {
        let whole = StoredState(log.snapshot.bytes)
        // As one patch: a large value is taken apart and put together once.
        var patch: [UInt8] = []
        for entry in log.entries where entry.bytes.count > 2 {
            patch.append(UInt8(ascii: patch.isEmpty ? "[" : ","))
            patch += entry.bytes.dropFirst().dropLast()
        }
        guard !patch.isEmpty else { return whole }
        patch.append(UInt8(ascii: "]"))
        let json = try patch.withUnsafeBytes { patch in
            try whole.json.withUnsafeBytes { value in
                // Written by this program, so its work has no limit but its length.
                try JSONPatch.apply(patch, to: value, maximumBytes: .max / 2, workLimit: .max)
            }
        }
        return StoredState(version: whole.version, json: json)
    }

    /// Bytes of the value and of its changes.
    var byteCount: Int {
        switch self {
        case .value(let bytes): bytes.count
        case .log(let log): log.entries.reduce(log.snapshot.bytes.count) { $0 + $1.bytes.count }
        }
    }

    /// Whether decoding it takes a while.
    var isLarge: Bool { byteCount > 64 << 10 || log?.entries.count ?? 0 > 1_000 }

    var log: StoredLog? { if case .log(let log) = self { log } else { nil } }
}
