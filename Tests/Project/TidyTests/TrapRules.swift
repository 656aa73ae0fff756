/// Traps in modules that external data can reach: data from clients, servers, a coordination store or a file.
///
/// Each trap is in ``groups``, with the reason why no data leads there, or has a comment `unreachable from data:` with that reason on the
/// line or within the three lines above. Docs/Reference/ThreatModel.md names the tests.
enum TrapRules {
    struct Group {
        let reason: String
        /// The number of traps in each file.
        let files: [String: Int]
    }

    static let modules: Set<String> = [
        "Bytes", "Platform", "Transports", "Relays", "IdentifiedArrays", "Networking", "WebSockets", "TrebuchetWire",
        "Deltas",
        "TrebuchetActors", "TrebuchetClient", "Trebuchet", "TrebuchetServices", "TrebuchetCluster", "TrebuchetNodes",
        "TrebuchetRedis",
        "TrebuchetServicesModel", "TrebuchetServicesClient", "TrebuchetStore", "Transfers", "TrebuchetTelemetry",
        "TrebuchetInspector", "TrebuchetURLSession", "TrebuchetTokens",
    ]

    static let groups = [
        Group(
            reason: "the system or a library is out of memory, of threads, or another one than was built for",
            files: [
                "Base/Bytes/ByteBuffer.swift": 1, "Base/Bytes/SharedBytes.swift": 1,
                "Transport/Networking/Reactor+batching.swift": 1,
                "Transport/Networking/Reactor.swift": 2, "Transport/Networking/ReactorGroup.swift": 3,
                "Transport/Networking/TLS/TLSConnection.swift": 2,
                "Base/Platform/DetachedThread.swift": 1, "Base/Platform/SanitizedMutex.swift": 1,
                "State/Relays/SanitizedMutex.swift": 1,
                "Server/Trebuchet/Access/AccessPolicy+apiKeys.swift": 2,
                "Server/Trebuchet/Access/TokenPublicKey.swift": 1,
                "Server/Trebuchet/StaticFiles/MemoryPage.swift": 2, "Server/Trebuchet/Server/SignalReader.swift": 1,
                "Cluster/TrebuchetRedis/Client/RedisScript.swift": 2,
                "Transport/WebSockets/Compression/Deflater.swift": 1,
                "Transport/WebSockets/Compression/Inflater.swift": 1,
                "Transport/WebSockets/Frames/MaskingKeys.swift": 2,
                "Transport/WebSockets/HandshakeKey.swift": 2,
            ]),
        Group(
            reason: "a value that the program itself gives, mostly when it starts",
            files: [
                "Base/Platform/DetachedThread.swift": 1, "State/Relays/EventQueue.swift": 1,
                "Actors/TrebuchetActors/Calls/RateLimit.swift": 1,
                "Server/Trebuchet/Server/TrebuchetServer.swift": 3,
                "Actors/TrebuchetActors/Observability/Metric.swift": 1,
                "Client/TrebuchetClient/ClientAddresses.swift": 1,
                "Services/TrebuchetServices/Auth/Accounts/Accounts.swift": 1,
                "Services/TrebuchetServices/Auth/Mail/CommandMailer.swift": 1,
                "Services/TrebuchetServices/Auth/OpenID/OpenIDProvider.swift": 1,
                "Services/TrebuchetServicesClient/Collections/ClientCollections.swift": 1,
                "Server/TrebuchetStore/WorkerThread.swift": 1,
                "Transport/WebSockets/WebSocket+sending.swift": 1,
            ]),
        Group(
            reason: "a method that each subclass overrides, or that is unavailable",
            files: [
                "Actors/Deltas/Storage/Leaf.swift": 4, "Actors/TrebuchetActors/ActorSystem/DispatchTable.swift": 4,
                "Actors/TrebuchetActors/Dispatch/ActorRecord.swift": 3,
            ]),
        Group(
            reason: "code that runs on another thread, or waits for itself",
            files: [
                "Transport/Networking/Reactor.swift": 1, "State/Relays/Deadlock.swift": 1,
                "Transport/Transports/DispatchLoop.swift": 1,
                "Actors/TrebuchetActors/ActorSystem/TrebuchetActorID.swift": 1,
            ]),
        Group(
            reason: "a cast to the type that has just been compared",
            files: ["State/Relays/SharedChanges.swift": 2, "Actors/TrebuchetWire/Coding/ValueCoder.swift": 7]),
        Group(
            reason: "texts and whole numbers, which always have a form in JSON",
            files: [
                "Cluster/TrebuchetNodes/Forwarding/ForwardedClient.swift": 1,
                "Cluster/TrebuchetNodes/SharedStreams/SharedStreamMessage.swift": 1,
                "Actors/TrebuchetActors/Persistence/PersistedIdempotencyRecord.swift": 1,
            ]),
        Group(
            reason: "what the lines before it have made so",
            files: [
                "Base/Bytes/ByteBuffer.swift": 1, "Transport/Networking/Reactor.swift": 1,
                "Base/Platform/WorkQueue.swift": 1,
                "Cluster/TrebuchetNodes/SharedStreams/SharedStreamSubscriptions.swift": 1,
                "Actors/TrebuchetActors/Dispatch/ActorRecord.swift": 1,
                "Actors/TrebuchetActors/Persistence/StoredStateDecoder.swift": 1,
                "Services/TrebuchetServices/Collections/Server/Queries/CollectionReader.swift": 1,
                "Services/TrebuchetServices/Collections/Server/Queries/RowList.swift": 1,
                "Actors/TrebuchetWire/Patch/EditableJSON.swift": 1,
                "Transport/WebSockets/Compression/Deflater.swift": 1,
                "Transport/WebSockets/WebSocket+sending.swift": 1,
            ]),
        Group(
            reason: "an index that the app gives, as to an array",
            files: ["Actors/Deltas/Keyed/KeyedCollection+conformances.swift": 1]),
    ]

    static var known: [String: Int] {
        groups.reduce(into: [:]) { known, group in
            for (file, count) in group.files { known["Sources/" + file, default: 0] += count }
        }
    }

    static func findings(in files: [SourceText], known: [String: Int] = known) -> [Finding] {
        var counts: [String: (count: Int, lines: [Int])] = [:]
        for file in files where isWatched(file) {
            let lines = traps(in: file)
            if !lines.isEmpty { counts[file.path] = (lines.count, lines) }
        }
        return Set(counts.keys).union(known.keys).sorted().compactMap { path in
            let (count, lines) = counts[path] ?? (0, [])
            let expected = known[path, default: 0]
            if count == expected { return nil }
            return Finding(
                path: path, line: lines.last,
                message: count > expected
                    ? "\(count) places where the process ends, and \(expected) are known: throw, or write "
                        + "'// unreachable from data: …' with the reason at the new one"
                    : "\(count) places where the process ends, and \(expected) are known: lower the number in TrapRules.swift"
            )
        }
    }

    private static func isWatched(_ file: SourceText) -> Bool {
        let parts = file.path.split(separator: "/")
        return parts.count > 3 && parts[0] == "Sources" && modules.contains(String(parts[2]))
    }

    /// The lines of the unexplained traps, repeated for each trap on a line.
    private static func traps(in file: SourceText) -> [Int] {
        let trap = /\b(?:precondition|preconditionFailure|fatalError)\s*\(|\btry!|\bas!|\buniqueKeysWithValues\b/
            .wordBoundaryKind(.simple)
        return file.code.enumerated().flatMap { index, line -> [Int] in
            let count = line.matches(of: trap).count
            guard count > 0 else { return [] }
            let isExplained = file.comments[max(0, index - 3)...index].contains {
                $0.contains("unreachable from data:")
            }
            return isExplained ? [] : Array(repeating: index + 1, count: count)
        }
    }
}
