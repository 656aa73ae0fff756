internal import Networking
internal import Platform
internal import TrebuchetActors
internal import TrebuchetCluster

/// Views of the server as a whole for the inspector.
extension TrebuchetServer {
    /// The maximum number of methods shown: those with the most calls.
    private static let maximumMethods = 200

    func inspectedOverview(writes: Bool) async throws(TrebuchetError) -> InspectorJSON {
        let list = try await metricList()
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
        // The server's own, or else the engine.
        guard let writer = shards[0].writers.first else { return .object([("store", .null)]) }
        let counts = try await metricList().counts
        let writes = counts.times(of: .storeWrites)
        var failure: String?
        for shard in shards {
            let found = await Self.query(shard.reactor, timeout: Self.answerTime) {
                shard.writers.lazy.compactMap(\.failure).first
            }
            failure = failure ?? (found ?? nil)
        }
        let type = "\(Swift.type(of: writer.store))"
        return .object([
            (
                "store",
                .object([
                    ("type", .text(type)), ("writes", .count(writes.count)), ("seconds", .seconds(writes.sum)),
                    ("failures", .count(counts[.storeWritesFailed])), ("failing", .text(failure)),
                ])
            )
        ])
    }

    func inspectedNodes() -> InspectorJSON {
        guard let nodes = context.nodes else { return .object([("node", .null), ("nodes", .list([]))]) }
        let (acquired, lost) = nodes.watch.counts
        return .object([
            ("node", .text(nodes.node.name)), ("slots", .count(nodes.member.slotCount)),
            ("slotsTaken", .count(acquired)), ("slotsLost", .count(lost)),
            ("engineProblem", .text(nodes.member.engineError?.message)),
            ("nodes", .list(nodes.member.liveNodes.map { .text($0.name) })),
            ("owners", .list(Self.owners(of: nodes))),
        ])
    }

    /// Returns the owner of each slot as far as this node knows it without a query, else the planned owner, which the set of
    /// live nodes determines.
    private static func owners(of nodes: ClusterRouter) -> [InspectorJSON] {
        var parts: [(owner: String?, isKnown: Bool, first: Int, last: Int)] = []
        for slot in ClusterSlot.all {
            let known = nodes.directory.knownOwner(of: slot)
            let owner = (known ?? nodes.member.plannedOwner(of: slot))?.name
            if let last = parts.last, last.owner == owner, last.isKnown == (known != nil) {
                parts[parts.count - 1].last = slot.number
            } else {
                parts.append((owner, known != nil, slot.number, slot.number))
            }
        }
        return parts.map { part in
            .object([
                ("node", .text(part.owner)), ("known", .flag(part.isKnown)), ("first", .count(part.first)),
                ("last", .count(part.last)),
            ])
        }
    }
}

/// The part of a list that is shown: `?page=0&size=100`.
struct ListPage {
    let page: Int
    let size: Int

    init(_ query: InspectorQuery) throws(InspectorQuery.InvalidQuery) {
        page = try query.number("page", in: 0...1_000_000) ?? 0
        size = try query.number("size", in: 1...1_000) ?? 100
    }

    /// The index after the last element of the page.
    var end: Int { (page + 1) * size }

    func of<Element>(_ list: [Element]) -> ArraySlice<Element> {
        list[min(page * size, list.count)..<min(end, list.count)]
    }

    func head(found: Int) -> [(String, InspectorJSON)] {
        [
            ("page", .count(page)), ("size", .count(size)), ("pages", .count((found + size - 1) / size)),
            ("found", .count(found)),
        ]
    }
}
