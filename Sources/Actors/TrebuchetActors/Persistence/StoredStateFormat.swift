internal import TrebuchetWire

/// The stored form of a state: a value, as earlier versions of the program wrote it, or a log.
enum StoredStateFormat: Sendable {
    case value([UInt8])
    case log(StoredLog)

    /// Returns the value with all changes applied.
    func state() throws -> StoredState {
        switch self {
        case .value(let bytes): StoredState(bytes)
        case .log(let log): try Self.state(of: log)
        }
    }

    private static func state(of log: StoredLog) throws -> StoredState {
        let whole = StoredState(log.snapshot.bytes)
        // One combined patch, so that a large value is parsed and rebuilt only once.
        var patch: [UInt8] = []
        for entry in log.entries where entry.bytes.count > 2 {
            patch.append(UInt8(ascii: patch.isEmpty ? "[" : ","))
            patch += entry.bytes.dropFirst().dropLast()
        }
        guard !patch.isEmpty else { return whole }
        patch.append(UInt8(ascii: "]"))
        let json = try patch.withUnsafeBytes { patch in
            try whole.json.withUnsafeBytes { value in
                // Written by this program, so only its length limits the work.
                try JSONPatch.apply(patch, to: value, maximumBytes: .max / 2, workLimit: .max)
            }
        }
        return StoredState(version: whole.version, json: json)
    }

    /// The size of the value and its changes in bytes.
    var byteCount: Int {
        switch self {
        case .value(let bytes): bytes.count
        case .log(let log): log.entries.reduce(log.snapshot.bytes.count) { $0 + $1.bytes.count }
        }
    }

    /// Whether decoding takes a considerable time.
    var isLarge: Bool { byteCount > 64 << 10 || log?.entries.count ?? 0 > 1_000 }

    var log: StoredLog? { if case .log(let log) = self { log } else { nil } }
}
