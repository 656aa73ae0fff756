internal import TrebuchetActors

/// All that a server shows to who scrapes it: the names, what they mean, and the numbers behind them.
///
/// Labels are the program's own: types, methods, codes and settings. Names of actors, principals and addresses are in none, since
/// there may be any number of them.
struct MetricList {
    /// What is there now, beside what was counted.
    struct Now {
        var isReady = false
        var connections = 0
        var callsWaiting = 0
        var streams = 0
        var actors = 0
        var actorsOnDemand = 0
        var actorsUnloadable = 0
        var keptAnswers = 0
        var heldBytes = 0
        var heldLimit = 0
        /// Of each reactor, in their order.
        var reactors: [Reactor] = []
        var cluster: Cluster?
    }

    struct Reactor {
        var name = ""
        var turns: UInt64 = 0
        var busySeconds = 0.0
        var longestTurnSeconds = 0.0
        var stalls = 0
    }

    struct Cluster {
        var slots = 0
        var nodes = 0
        var isEngineThere = true
        var taken: UInt64 = 0
        var lost: UInt64 = 0
    }

    var counts = CountSum()
    var refusals: [Int: UInt64] = [:]
    var now = Now()

    /// In the text format.
    func text(_ rows: [MethodRows.Row] = MethodRows.all, process: ProcessFigures? = .read()) -> String {
        var text = MetricsText()
        text.add(
            "trebuchet_ready", .gauge, "1 while the server takes clients, 0 before and when it is to end.",
            now.isReady ? 1 : 0)
        addConnections(to: &text)
        addCalls(rows, to: &text)
        addStreams(to: &text)
        addRest(to: &text)
        addReactors(to: &text)
        if let cluster = now.cluster { add(cluster, to: &text) }
        if let process { add(process, to: &text) }
        return text.text
    }

    private func samples(_ label: String, _ figures: [(String, Figure)]) -> [(MetricsText.Labels, Double)] {
        figures.map { ([label: $0], Double(counts[$1])) }
    }

    private func addConnections(to text: inout MetricsText) {
        text.add("trebuchet_connections", .gauge, "Connections that are open now.", now.connections)
        text.add(
            "trebuchet_connections_opened_total", .counter, "Connections that were let in.",
            counts[.connectionsOpened])
        text.add(
            "trebuchet_connections_closed_total", .counter, "Connections that have ended.", counts[.connectionsClosed])
        text.add(
            "trebuchet_connection_ends_total", .counter,
            "Why connections have ended: the client closed it, it was lost, the client was silent or took nothing, sent what is no WebSocket, passed a limit, or the server closed it.",
            samples("cause", ServerEvent.Closing.Cause.allCases.map { ($0.rawValue, $0.figure) }))
        text.add(
            "trebuchet_requests_refused_total", .counter,
            "Connections and requests for pages that were refused, by the HTTP status of the answer.",
            refusals.sorted { $0.key < $1.key }.map { (["status": "\($0.key)"], Double($0.value)) })
    }

    private func addCalls(_ rows: [MethodRows.Row], to text: inout MetricsText) {
        let begun = counts[.callsBegun]
        text.add(
            "trebuchet_calls_active", .gauge, "Calls that wait for their answer now.",
            begun &- min(begun, counts[.callsEnded]))
        text.add(
            "trebuchet_calls_waiting", .gauge, "Of these, calls and streams that wait for an actor to be made.",
            now.callsWaiting)
        let samples: [(MetricsText.Labels, TimeCount)] = callTimes(rows).map {
            (["type": $0.type, "method": $0.method], $0.times)
        }
        text.add(
            "trebuchet_call_duration_seconds",
            "How long calls took at the server, from when their message was in hand to when the answer was written.",
            samples)
        text.add(
            "trebuchet_calls_forwarded_total", .counter, "Calls that went to the node that has their actor.",
            counts[.callsForwarded])
        text.add(
            "trebuchet_errors_total", .counter, "Errors that clients were told, by code.",
            self.samples("code", Figure.codes.map { ($0.code, $0.figure) }))
        text.add(
            "trebuchet_repeats_total", .counter,
            "What became of calls that clients sent again after a lost connection.",
            self.samples(
                "outcome",
                [
                    ("run", .repeatsRun), ("joined", .repeatsJoined), ("answered", .repeatsAnswered),
                    ("forgotten", .repeatsForgotten), ("refused", .repeatsRefused),
                ]))
        text.add(
            "trebuchet_kept_answers", .gauge, "Answers that are kept for clients that may ask again.", now.keptAnswers)
        text.add(
            "trebuchet_refusals_total", .counter, "Refusals because of a limit, by the setting in ServerLimits.",
            counts.limits.sorted { $0.key < $1.key }.map { (["limit": $0.key], Double($0.value)) })
    }

    /// How long calls took, by method; those of methods that no dispatch table has come last, as `other`.
    func callTimes(_ rows: [MethodRows.Row] = MethodRows.all) -> [(type: String, method: String, times: TimeCount)] {
        // Two types may have the same name; each series is to be there once.
        var times: [String: (type: String, method: String, times: TimeCount)] = [:]
        for row in rows {
            guard let count = counts.times(row: row.number) else { continue }
            times["\(row.type) \(row.method)", default: (row.type, row.method, TimeCount())].times.add(count)
        }
        let other = counts.times(row: TimedWork.otherCalls.rawValue).map { ("other", "other", $0) }
        return times.sorted { $0.key < $1.key }.map(\.value) + [other].compactMap { $0 }
    }

    private func addStreams(to text: inout MetricsText) {
        text.add("trebuchet_streams", .gauge, "Streams that carry states and events now.", now.streams)
        text.add(
            "trebuchet_streams_begun_total", .counter, "Streams that have begun, or gone on over a new connection.",
            counts[.streamsBegun])
        text.add("trebuchet_streams_ended_total", .counter, "Streams that have ended.", counts[.streamsEnded])
        text.add(
            "trebuchet_resumes_total", .counter,
            "How streams went on that clients took up again: behind what they had, with the whole value, or with the news that events were missed.",
            samples("outcome", [("in_place", .resumedInPlace), ("anew", .resumedAnew), ("too_late", .resumedTooLate)]))
        text.add(
            "trebuchet_versions_total", .counter, "Versions of observed states, and events.", counts[.versionsMade])
        text.add(
            "trebuchet_deliveries_total", .counter, "Messages with a version or an event, one for each subscriber.",
            samples("kind", [("patch", .patchesDelivered), ("whole", .wholesDelivered), ("event", .eventsDelivered)]))
        text.add(
            "trebuchet_versions_skipped_total", .counter,
            "Changes of a state that a subscriber was not sent one by one, as it got the whole value of a later one.",
            counts[.versionsSkipped])
        text.add(
            "trebuchet_subscribers_behind_total", .counter,
            "How often a subscriber could not be written to when there was something new.", counts[.subscribersBehind])
        text.add(
            "trebuchet_delivery_age_seconds",
            "How old the newest version was when all subscribers of a reactor that take something had it.",
            [([:], counts.times(of: .deliveries))])
    }

    private func addRest(to text: inout MetricsText) {
        text.add(
            "trebuchet_held_bytes", .gauge,
            "Bytes held for clients: input, output that is not taken, calls, answers, versions.", now.heldBytes)
        text.add(
            "trebuchet_held_limit_bytes", .gauge, "From how many held bytes on new work is refused.", now.heldLimit)
        text.add("trebuchet_actors", .gauge, "Actors that stand ready.", now.actors)
        text.add(
            "trebuchet_actors_on_demand", .gauge, "Of these, actors that were made when they were called.",
            now.actorsOnDemand)
        text.add(
            "trebuchet_actors_unloadable", .gauge,
            "Actors whose persisted states could not be loaded when that was tried last, within a minute.",
            now.actorsUnloadable)
        text.add(
            "trebuchet_actors_made_total", .counter, "Actors that were made or loaded when they were called.",
            counts[.actorsMade])
        text.add(
            "trebuchet_actors_released_total", .counter, "Actors that were let go as nobody used them.",
            counts[.actorsLetGo])
        text.add(
            "trebuchet_store_write_duration_seconds", "How long writes to the store took.",
            [([:], counts.times(of: .storeWrites))])
        text.add(
            "trebuchet_store_write_failures_total", .counter, "Writes to the store that have failed.",
            counts[.storeWritesFailed])
    }

    private func addReactors(to text: inout MetricsText) {
        func each(_ value: (Reactor) -> Double) -> [(MetricsText.Labels, Double)] {
            now.reactors.map { (["reactor": $0.name], value($0)) }
        }
        text.add("trebuchet_reactor_turns_total", .counter, "Turns of a reactor's loop.", each { Double($0.turns) })
        text.add(
            "trebuchet_reactor_busy_seconds_total", .counter, "Time that a reactor did not wait.", each(\.busySeconds))
        text.add(
            "trebuchet_reactor_longest_turn_seconds", .gauge,
            "The longest turn of the last half minute, up to a whole one.",
            each(\.longestTurnSeconds))
        text.add(
            "trebuchet_reactor_stalls_total", .counter, "Turns that took more than 100 ms.", each { Double($0.stalls) })
    }

    private func add(_ cluster: Cluster, to text: inout MetricsText) {
        text.add("trebuchet_cluster_slots", .gauge, "Slots that this node owns.", cluster.slots)
        text.add("trebuchet_cluster_nodes", .gauge, "Nodes that this one sees living.", cluster.nodes)
        text.add(
            "trebuchet_cluster_engine_up", .gauge, "1 while the cluster's engine answers.",
            cluster.isEngineThere ? 1 : 0)
        text.add(
            "trebuchet_cluster_slots_taken_total", .counter, "Leases of slots that this node was given.", cluster.taken)
        text.add(
            "trebuchet_cluster_slots_lost_total", .counter, "Slots that this node gave away or lost.", cluster.lost)
    }

    private func add(_ process: ProcessFigures, to text: inout MetricsText) {
        text.add(
            "process_cpu_seconds_total", .counter, "Processor time of the process, in seconds.",
            process.processorSeconds)
        text.add(
            "process_resident_memory_bytes", .gauge, "Memory of the process that is in the machine's.",
            process.residentBytes)
        text.add("process_virtual_memory_bytes", .gauge, "Addresses of the process.", process.virtualBytes)
        text.add("process_open_fds", .gauge, "Open file descriptors.", process.openFiles)
        if let most = process.mostFiles { text.add("process_max_fds", .gauge, "How many there may be.", most) }
        text.add(
            "process_start_time_seconds", .gauge, "When the process began, in seconds since 1970.", process.started)
        text.add("process_threads", .gauge, "Threads of the process.", process.threads)
    }
}
