internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetNodes

/// Views of the server as a whole.
extension ServerView {
    /// The maximum number of methods shown: those with the most calls.
    private static let maximumMethods = 200

    func inspectedOverview(writes: Bool) async throws(TrebuchetError) -> InspectorJSON {
        let list = try await metrics()
        let (counts, now) = (list.counts, list.now)
        let begun = counts[.callsBegun]
        var all = DurationHistogram()
        let times = list.callTimes()
        for entry in times { all.merge(entry.times) }
        let methods = times.sorted { $0.times.count > $1.times.count }.prefix(Self.maximumMethods)
        var members: [(String, InspectorJSON)] = [
            ("status", .text("\(status)")), ("ready", .flag(now.isReady)),
            ("writes", .flag(writes)),
            ("time", .number(Double(WallTime.milliseconds) / 1e3)),
            ("connections", .count(now.connections)),
            ("connectionsOpened", .count(counts[.connectionsOpened])),
            ("actors", .count(now.actors)), ("actorsOnDemand", .count(now.actorsOnDemand)),
            ("streams", .count(now.streams)),
            (
                "calls",
                .object([
                    ("answered", .count(all.count)), ("seconds", .seconds(all.sum)),
                    ("bounds", .list(DurationBuckets.bounds.map { .seconds($0) })),
                    ("buckets", .list(all.buckets.map { .count($0) })),
                    ("active", .count(begun &- min(begun, counts[.callsEnded]))),
                    ("waiting", .count(now.callsWaiting)), ("forwarded", .count(counts[.callsForwarded])),
                ])
            ),
            (
                "methods",
                .list(
                    methods.map { entry in
                        .object([
                            ("type", .text(entry.type)), ("method", .text(entry.method)),
                            ("calls", .count(entry.times.count)), ("seconds", .seconds(entry.times.sum)),
                        ])
                    })
            ),
            ("errors", .object(Metric.codes.map { ($0.code, .count(counts[$0.metric])) })),
            ("refusals", .object(counts.limits.sorted { $0.key < $1.key }.map { ($0.key, .count($0.value)) })),
            (
                "refusedRequests",
                .object(list.refusals.sorted { $0.key < $1.key }.map { ("\($0.key)", .count($0.value)) })
            ),
            ("versions", .count(counts[.versionsMade])),
            (
                "deliveries",
                .object([
                    ("patch", .count(counts[.patchesDelivered])), ("whole", .count(counts[.wholesDelivered])),
                    ("event", .count(counts[.eventsDelivered])),
                ])
            ),
            ("versionsSkipped", .count(counts[.versionsSkipped])),
            ("subscribersBehind", .count(counts[.subscribersBlocked])),
            ("bufferedBytes", .count(now.bufferedBytes)), ("bufferedLimitBytes", .count(now.bufferedLimit)),
            ("reactors", .list(now.reactors.map { Self.json($0) })),
        ]
        if let process = ProcessMetrics.read() {
            members.append(
                (
                    "process",
                    .object([
                        ("processorSeconds", .number(process.processorSeconds)),
                        ("residentBytes", .count(process.residentBytes)), ("openFiles", .count(process.openFiles)),
                        ("threads", .count(process.threads)), ("started", .number(process.started)),
                    ])
                ))
        }
        return .object(members)
    }

    private static func json(_ reactor: MetricList.Reactor) -> InspectorJSON {
        .object([
            ("name", .text(reactor.name)), ("turns", .count(reactor.turns)),
            ("busySeconds", .number(reactor.busySeconds)),
            ("longestTurnSeconds", .number(reactor.longestTurnSeconds)), ("stalls", .count(reactor.stalls)),
        ])
    }

    func inspectedStore() async throws(TrebuchetError) -> InspectorJSON {
        guard let type = storeType else { return .object([("store", .null)]) }
        let counts = try await metrics().counts
        let writes = counts.times(of: .storeWrites)
        return .object([
            (
                "store",
                .object([
                    ("type", .text(type)), ("writes", .count(writes.count)), ("seconds", .seconds(writes.sum)),
                    ("failures", .count(counts[.storeWritesFailed])), ("failing", .text(await storeFailure())),
                ])
            )
        ])
    }

    func inspectedNodes() -> InspectorJSON {
        guard let node else { return .object([("node", .null), ("nodes", .list([]))]) }
        let owners = node.slotOwners.map { part in
            InspectorJSON.object([
                ("node", .text(part.owner)), ("known", .flag(part.isKnown)), ("first", .count(part.first)),
                ("last", .count(part.last)),
            ])
        }
        return .object([
            ("node", .text(node.name)), ("slots", .count(node.slotCount)),
            ("slotsTaken", .count(node.acquiredSlots)), ("slotsLost", .count(node.lostSlots)),
            ("engineProblem", .text(node.storeError)), ("nodes", .list(node.liveNodes.map { .text($0) })),
            ("owners", .list(owners)),
        ])
    }
}
