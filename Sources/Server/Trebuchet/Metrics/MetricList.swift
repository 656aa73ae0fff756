package import TrebuchetActors

/// All metrics of a server as exported to Prometheus: names, descriptions and values.
///
/// Labels have values that the program defines: types, methods, codes and settings. Actor names, principals and addresses are
/// no labels, since their number is unbounded.
package struct MetricList {
    /// Gauges: current values, in contrast to the counters in `counts`.
    package struct Gauges {
        package var isReady = false
        package var connections = 0
        package var callsWaiting = 0
        package var streams = 0
        package var actors = 0
        package var actorsOnDemand = 0
        package var actorsUnloadable = 0
        package var recordedResponses = 0
        package var bufferedBytes = 0
        package var bufferedLimit = 0
        /// The time of the clock in seconds since 1970.
        package var time = 0.0
        /// The size of the store's file; nil without one.
        package var store: StoreFileUsage?
        /// The times at which certificates expire, by endpoint.
        package var certificates: [(endpoint: String, seconds: Int)] = []
        /// The reactors, in their order.
        package var reactors: [Reactor] = []
        /// The metrics of the router to other servers.
        package var router: [RouterMetric] = []
    }

    /// The metrics of one reactor.
    package struct Reactor {
        package var name = ""
        package var turns: UInt64 = 0
        package var busySeconds = 0.0
        package var longestTurnSeconds = 0.0
        package var stalls = 0
    }

    package var counts = MetricTotals()
    package var refusals: [Int: UInt64] = [:]
    /// The responses to HTTP requests that make calls or run a route, by status.
    package var httpRequests: [Int: UInt64] = [:]
    package var now = Gauges()

    /// Returns all metrics in the Prometheus text format.
    func text(_ rows: [MethodHistogramIndex.Row] = MethodHistogramIndex.all, process: ProcessMetrics? = .read())
        -> String
    {
        var text = MetricsText()
        text.appendMetric(
            "trebuchet_ready", .gauge, "1 while the server accepts clients, else 0.",
            now.isReady ? 1 : 0)
        text.appendMetric(
            "trebuchet_build_info", .gauge, "1, with the version of the library as label.",
            [(["version": LibraryVersion.number], 1)])
        text.appendMetric("trebuchet_time_seconds", .gauge, "Time of the clock, in seconds since 1970.", now.time)
        text.appendMetric(
            "trebuchet_certificate_expiry_timestamp_seconds", .gauge,
            "Time at which a loaded certificate expires, in seconds since 1970.",
            now.certificates.map { (["endpoint": $0.endpoint], Double($0.seconds)) })
        addConnections(to: &text)
        addCalls(rows, to: &text)
        addStreams(to: &text)
        addRemaining(to: &text)
        addReactors(to: &text)
        for metric in now.router {
            text.appendMetric(metric.name, metric.isCounter ? .counter : .gauge, metric.help, metric.value)
        }
        if let process { appendMetrics(of: process, to: &text) }
        return text.text
    }

    private func samples(_ label: String, _ metrics: [(String, Metric)]) -> [(MetricsText.Labels, Double)] {
        metrics.map { ([label: $0], Double(counts[$1])) }
    }

    private func addConnections(to text: inout MetricsText) {
        text.appendMetric("trebuchet_connections", .gauge, "Open connections.", now.connections)
        text.appendMetric(
            "trebuchet_connections_opened_total", .counter, "Accepted connections.",
            counts[.connectionsOpened])
        text.appendMetric(
            "trebuchet_connections_closed_total", .counter, "Closed connections.", counts[.connectionsClosed])
        text.appendMetric(
            "trebuchet_connection_ends_total", .counter,
            "Closed connections by cause: closed by the client, lost, unresponsive client, protocol violation, limit exceeded, or closed by the server.",
            samples("cause", ServerEvent.Closing.Cause.allCases.map { ($0.rawValue, $0.metric) }))
        text.appendMetric(
            "trebuchet_requests_refused_total", .counter,
            "Rejected connections and page requests, by HTTP status.",
            refusals.sorted { $0.key < $1.key }.map { (["status": "\($0.key)"], Double($0.value)) })
        text.appendMetric(
            "trebuchet_http_requests_total", .counter, "HTTP requests that make calls or run a route, by status.",
            httpRequests.sorted { $0.key < $1.key }.map { (["status": "\($0.key)"], Double($0.value)) })
    }

    private func addCalls(_ rows: [MethodHistogramIndex.Row], to text: inout MetricsText) {
        let begun = counts[.callsBegun]
        text.appendMetric(
            "trebuchet_calls_active", .gauge, "In-flight calls.",
            begun &- min(begun, counts[.callsEnded]))
        text.appendMetric(
            "trebuchet_calls_waiting", .gauge, "Calls and streams that wait for the activation of an actor.",
            now.callsWaiting)
        let samples: [(MetricsText.Labels, DurationHistogram)] = callTimes(rows).map {
            (["type": $0.type, "method": $0.method], $0.times)
        }
        text.appendHistograms(
            "trebuchet_call_duration_seconds",
            "Duration of calls at the server, from message to response.",
            samples)
        text.appendMetric(
            "trebuchet_calls_forwarded_total", .counter, "Calls forwarded to the owner of their actor.",
            counts[.callsForwarded])
        text.appendMetric(
            "trebuchet_errors_total", .counter, "Errors sent to clients, by code.",
            self.samples("code", Metric.codes.map { ($0.code, $0.metric) }))
        text.appendMetric(
            "trebuchet_repeats_total", .counter,
            "Outcomes of calls that clients repeated after a lost connection.",
            self.samples(
                "outcome",
                [
                    ("run", .repeatsRun), ("joined", .repeatsJoined), ("answered", .repeatsAnswered),
                    ("expired", .repeatsForgotten), ("refused", .repeatsRefused),
                ]))
        text.appendMetric(
            "trebuchet_recorded_responses", .gauge, "Responses in the idempotency cache.", now.recordedResponses)
        text.appendMetric(
            "trebuchet_refusals_total", .counter, "Rejections because of a limit, by the setting in ServerLimits.",
            counts.limits.sorted { $0.key < $1.key }.map { (["limit": $0.key], Double($0.value)) })
    }

    /// Returns call durations by method, sorted; methods that are in no dispatch table come last, as `other`.
    package func callTimes(_ rows: [MethodHistogramIndex.Row] = MethodHistogramIndex.all) -> [(
        type: String, method: String, times: DurationHistogram
    )] {
        // Two types may have the same name; each series must occur once.
        var times: [String: (type: String, method: String, times: DurationHistogram)] = [:]
        for row in rows {
            guard let count = counts.times(row: row.number) else { continue }
            times["\(row.type) \(row.method)", default: (row.type, row.method, DurationHistogram())].times.merge(count)
        }
        let other = counts.times(row: TimedOperation.otherCalls.rawValue).map { ("other", "other", $0) }
        return times.sorted { $0.key < $1.key }.map(\.value) + [other].compactMap { $0 }
    }

    private func addStreams(to text: inout MetricsText) {
        text.appendMetric("trebuchet_streams", .gauge, "Active streams of states and events.", now.streams)
        text.appendMetric(
            "trebuchet_streams_started_total", .counter,
            "Started streams, including those resumed over a new connection.",
            counts[.streamsBegun])
        text.appendMetric("trebuchet_streams_ended_total", .counter, "Ended streams.", counts[.streamsEnded])
        text.appendMetric(
            "trebuchet_resumes_total", .counter,
            "Resumed streams by outcome: resumed after the last version, sent the whole value, or notified of missed events.",
            samples(
                "outcome",
                [
                    ("resumed", .resumedInPlace), ("resynchronized", .resumedWithSnapshot),
                    ("events_missed", .resumedTooLate),
                ]))
        text.appendMetric(
            "trebuchet_versions_total", .counter, "Versions of observed states, and events.", counts[.versionsMade])
        text.appendMetric(
            "trebuchet_deliveries_total", .counter, "Messages with a version or an event, per subscriber.",
            samples("kind", [("patch", .patchesDelivered), ("whole", .wholesDelivered), ("event", .eventsDelivered)]))
        text.appendMetric(
            "trebuchet_versions_skipped_total", .counter,
            "State changes that were conflated for a subscriber.",
            counts[.versionsSkipped])
        text.appendMetric(
            "trebuchet_subscribers_behind_total", .counter,
            "Updates for which a subscriber could not be written to.", counts[.subscribersBlocked])
        text.appendHistograms(
            "trebuchet_delivery_age_seconds",
            "Age of the newest version when all writable subscribers of a reactor had received it.",
            [([:], counts.times(of: .deliveries))])
    }

    private func addRemaining(to text: inout MetricsText) {
        text.appendMetric(
            "trebuchet_buffered_bytes", .gauge,
            "Buffered memory for clients in bytes: input, unsent output, calls, responses, versions.", now.bufferedBytes
        )
        text.appendMetric(
            "trebuchet_buffered_limit_bytes", .gauge,
            "Limit of buffered memory in bytes, above which new work is rejected.", now.bufferedLimit)
        text.appendMetric("trebuchet_actors", .gauge, "Active actors.", now.actors)
        text.appendMetric(
            "trebuchet_actors_on_demand", .gauge, "Active actors that were activated by a call.",
            now.actorsOnDemand)
        text.appendMetric(
            "trebuchet_actors_unloadable", .gauge,
            "Actors whose persisted states could not be loaded at the last attempt, within a minute.",
            now.actorsUnloadable)
        text.appendMetric(
            "trebuchet_actors_activated_total", .counter, "Activations of actors.",
            counts[.actorsActivated])
        text.appendMetric(
            "trebuchet_actors_deactivated_total", .counter, "Deactivations of idle actors.",
            counts[.actorsDeactivated])
        text.appendMetric(
            "trebuchet_alarms_delivered_total", .counter, "Alarms whose methods succeeded.",
            counts[.alarmsDelivered])
        text.appendMetric(
            "trebuchet_alarms_failed_total", .counter, "Attempts to deliver an alarm whose method threw an error.",
            counts[.alarmsFailed])
        text.appendHistograms(
            "trebuchet_store_write_duration_seconds", "Duration of writes to the store.",
            [([:], counts.times(of: .storeWrites))])
        text.appendMetric(
            "trebuchet_store_write_failures_total", .counter, "Failed writes to the store.",
            counts[.storeWritesFailed])
        if let store = now.store {
            text.appendMetric(
                "trebuchet_store_size_bytes", .gauge, "Size of the store's file and its log in bytes.", store.bytes)
            text.appendMetric(
                "trebuchet_store_disk_free_bytes", .gauge, "Free space of the store's disk in bytes.", store.freeBytes)
        }
    }

    private func addReactors(to text: inout MetricsText) {
        func each(_ value: (Reactor) -> Double) -> [(MetricsText.Labels, Double)] {
            now.reactors.map { (["reactor": $0.name], value($0)) }
        }
        text.appendMetric(
            "trebuchet_reactor_turns_total", .counter, "Turns of a reactor's event loop.", each { Double($0.turns) })
        text.appendMetric(
            "trebuchet_reactor_busy_seconds_total", .counter, "Busy time of a reactor, in seconds.", each(\.busySeconds)
        )
        text.appendMetric(
            "trebuchet_reactor_longest_turn_seconds", .gauge,
            "The longest turn of the last 30 to 60 seconds.",
            each(\.longestTurnSeconds))
        text.appendMetric(
            "trebuchet_reactor_stalls_total", .counter, "Turns that took more than 100 ms.", each { Double($0.stalls) })
    }

    private func appendMetrics(of process: ProcessMetrics, to text: inout MetricsText) {
        text.appendMetric(
            "process_cpu_seconds_total", .counter, "Processor time of the process, in seconds.",
            process.processorSeconds)
        text.appendMetric(
            "process_resident_memory_bytes", .gauge, "Resident memory of the process in bytes.",
            process.residentBytes)
        text.appendMetric(
            "process_virtual_memory_bytes", .gauge, "Virtual memory of the process in bytes.", process.virtualBytes)
        text.appendMetric("process_open_fds", .gauge, "Open file descriptors.", process.openFiles)
        if let most = process.maximumOpenFiles {
            text.appendMetric("process_max_fds", .gauge, "Maximum number of open file descriptors.", most)
        }
        text.appendMetric(
            "process_start_time_seconds", .gauge, "Start time of the process, in seconds since 1970.", process.started)
        text.appendMetric("process_threads", .gauge, "Threads of the process.", process.threads)
    }
}

/// The version of this package.
package enum LibraryVersion {
    /// The version of the release; the file VERSION, which scripts/package reads, has the same.
    package static let number = "0.9.0"
}
