import Platform
import Trebuchet

/// Finds the problems in the responses of admin endpoints. Pure. The thresholds are those of the alert rules.
struct Diagnosis {
    /// The metrics of one server, and what has changed in the interval.
    private struct Metrics {
        let server: String
        let first: MetricsPage
        let second: MetricsPage
        let seconds: Double

        func value(_ name: String) -> Double { second.value(name) ?? 0 }

        /// Returns the increase of a counter in the interval.
        func increase(_ name: String, where isWanted: ([String: String]) -> Bool = { _ in true }) -> Double {
            max(0, second.sum(name, where: isWanted) - first.sum(name, where: isWanted))
        }

        /// Returns a quantile of the observations in the interval, as the upper bound of a bucket; nil for fewer than 20.
        func quantile(_ part: Double, of name: String) -> Double? {
            func buckets(_ page: MetricsPage) -> [Double: Double] {
                page.all(name + "_bucket").reduce(into: [:]) { sums, sample in
                    guard let text = sample.labels["le"], let bound = text == "+Inf" ? .infinity : Double(text) else {
                        return
                    }
                    sums[bound, default: 0] += sample.value
                }
            }
            let before = buckets(first)
            let now = buckets(second).map { (bound: $0.key, count: $0.value - (before[$0.key] ?? 0)) }
                .sorted { $0.bound < $1.bound }
            guard let all = now.last?.count, all >= 20 else { return nil }
            return now.first { $0.count >= part * all }?.bound
        }
    }

    private(set) var findings: [Finding] = []

    init(_ examinations: [Examination]) {
        for examination in examinations { addFindings(of: examination) }
        addFindingsOfCluster(examinations)
        let order = Finding.Severity.allCases
        findings = order.flatMap { severity in findings.filter { $0.severity == severity } }
    }

    private mutating func add(
        _ server: String, _ severity: Finding.Severity, _ alert: String, _ problem: String, do remedy: String
    ) {
        findings.append(Finding(server, severity, alert, problem, do: remedy))
    }

    // MARK: One server

    private mutating func addFindings(of examination: Examination) {
        let server = examination.server
        if let failure = examination.failure {
            add(
                server, .critical, "TrebuchetDown", "the admin endpoint does not respond as expected: \(failure)",
                do: "check that the server runs with --admin at this address, and the end of its log")
        }
        if let problem = examination.livenessProblem {
            add(
                server, .critical, "TrebuchetReactorStalls", problem,
                do: "look in the log for 'reactor is blocked' and what ran; restart the process if it stays")
        }
        for check in examination.failedChecks where check.name != "reactors" || examination.livenessProblem == nil {
            addFinding(of: check, server)
        }
        guard let first = examination.first, let second = examination.second else { return }
        let metrics = Metrics(
            server: server, first: first.page, second: second.page, seconds: max(0.001, second.time - first.time))
        // After a restart between the reads there is nothing to compare.
        guard metrics.value("process_start_time_seconds") == first.page.value("process_start_time_seconds") ?? 0 else {
            return add(
                server, .critical, "TrebuchetRestarts", "the server has started again during the examination",
                do: "read the last lines of the log before the start")
        }
        addFindingsOfStore(metrics)
        addFindingsOfCertificates(metrics, now: second.time)
        addFindingsOfClock(second, server)
        addFindingsOfReactors(metrics)
        addFindingsOfLimits(metrics)
        addFindingsOfCalls(metrics)
        addFindingsOfNode(metrics)
    }

    private mutating func addFinding(of check: (name: String, reason: String), _ server: String) {
        let (alert, remedy) =
            switch check.name {
            case "store": ("TrebuchetStoreWritesFail", "free disk space, or put the file back, as the reason says")
            case "cluster" where check.reason.contains("lost data"), "accounts":
                ("TrebuchetNodesEndedTogether", "decide at once whether to restore the coordination store")
            case "cluster": ("TrebuchetEngineDown", "bring the coordination store back with its data")
            case "reactors": ("TrebuchetReactorStalls", "look in the log for 'reactor is blocked' and what ran")
            default: ("TrebuchetNotReady", "wait for the end of its start or shutdown")
            }
        add(server, .critical, alert, "the check '\(check.name)' fails: \(check.reason)", do: remedy)
    }

    private mutating func addFindingsOfStore(_ metrics: Metrics) {
        let server = metrics.server
        let failures = "trebuchet_store_write_failures_total"
        let failed = metrics.increase(failures)
        if failed > 0 {
            add(
                server, .critical, "TrebuchetStoreWritesFail",
                "\(Self.whole(failed).counted("write")) to the store failed in the last \(Self.time(metrics.seconds))",
                do: "the log has the reason: 'store write failed'")
        } else if metrics.value(failures) > 0 {
            add(
                server, .note, "TrebuchetStoreWritesFail",
                "\(Self.whole(metrics.value(failures)).counted("write")) to the store failed since the server's start, none now",
                do: "the log has the reason: 'store write failed'")
        }
        if let slow = metrics.quantile(0.99, of: "trebuchet_store_write_duration_seconds"), slow > 0.25 {
            add(
                server, .warning, "TrebuchetStoreSlow", "1 % of the writes to the store take up to \(Self.time(slow))",
                do: "look at the load of the disk (iostat -x 5), or of Redis")
        }
        if let size = metrics.second.value("trebuchet_store_size_bytes"),
            let free = metrics.second.value("trebuchet_store_disk_free_bytes"), free < 1_073_741_824 || free < size
        {
            add(
                server, free < 104_857_600 ? .critical : .warning, "TrebuchetStoreDiskLow",
                "the disk of the store has \(TopMetricsView.bytes(free)) of free space; the store has "
                    + TopMetricsView.bytes(size),
                do:
                    "free space or enlarge the disk: writes fail when it is full, and a backup there needs the same size"
            )
        }
        let unloadable = metrics.value("trebuchet_actors_unloadable")
        if unloadable > 0 {
            add(
                server, .critical, "TrebuchetActorsUnloadable",
                "the persisted states of \(Self.whole(unloadable).counted("actor")) cannot be loaded",
                do: "the log names them after 10 s with the reason; do not delete the file")
        }
    }

    private mutating func addFindingsOfCertificates(_ metrics: Metrics, now: Double) {
        for sample in metrics.second.all("trebuchet_certificate_expiry_timestamp_seconds") {
            let days = (sample.value - now) / 86_400
            guard days < 14 else { continue }
            let endpoint = sample.labels["endpoint"] ?? "?"
            let whole = Self.whole(max(0, days).rounded(.down))
            add(
                metrics.server, days < 3 ? .critical : .warning, "TrebuchetCertificateExpires",
                days > 0
                    ? "the certificate for '\(endpoint)' expires in \(whole.counted("day"))"
                    : "the certificate for '\(endpoint)' has expired",
                do: "replace its files and send SIGHUP (systemctl reload)")
        }
    }

    private mutating func addFindingsOfClock(_ scrape: Examination.Scrape, _ server: String) {
        guard let time = scrape.page.value("trebuchet_time_seconds") else { return }
        let difference = time - scrape.time
        guard abs(difference) - scrape.uncertainty > 5 else { return }
        add(
            server, .warning, "TrebuchetClock",
            "its clock is \(Self.time(abs(difference))) \(difference > 0 ? "ahead of" : "behind") that of this machine",
            do: "synchronize the clocks of all machines (timedatectl); tokens and expiry times depend on them")
    }

    private mutating func addFindingsOfReactors(_ metrics: Metrics) {
        for sample in metrics.second.all("trebuchet_reactor_longest_turn_seconds") where sample.value > 0.25 {
            add(
                metrics.server, .warning, "TrebuchetReactorStalls",
                "\(sample.labels["reactor"] ?? "a reactor") was blocked for \(Self.time(sample.value)) in the last minute",
                do: "look in the log for 'reactor is blocked' and what ran")
        }
        for sample in metrics.second.all("trebuchet_reactor_busy_seconds_total") {
            let name = sample.labels["reactor"]
            let seconds = metrics.increase("trebuchet_reactor_busy_seconds_total") { $0["reactor"] == name }
            let busy = seconds / metrics.seconds
            guard busy > 0.9 else { continue }
            add(
                metrics.server, .warning, "TrebuchetReactorsBusy",
                "\(name ?? "a reactor") has used \(Self.whole(min(busy, 1) * 100)) % of a core",
                do: "split a hot actor, add nodes or cores, or limit rates; trebuchet top shows the methods")
        }
    }

    private mutating func addFindingsOfLimits(_ metrics: Metrics) {
        let server = metrics.server
        for sample in metrics.second.all("trebuchet_refusals_total") {
            let limit = sample.labels["limit"] ?? ""
            let refused = metrics.increase("trebuchet_refusals_total") { $0["limit"] == limit }
            let isOfServer = limit.hasSuffix(".total") || limit.hasSuffix(".totalBytes") || limit == "openFiles"
            if isOfServer, refused > 0 {
                add(
                    server, .critical, "TrebuchetServerFull", "the limit '\(limit)' refuses clients",
                    do: "raise it, or add nodes; Docs/Reference/Limits.md has its meaning")
            } else if isOfServer {
                add(
                    server, .note, "TrebuchetServerFull",
                    "the limit '\(limit)' has refused clients since the start of the server, none now",
                    do: "compare the number of connections with the limit; Docs/Reference/Limits.md has its meaning")
            } else if refused / metrics.seconds > 1 {
                add(
                    server, .warning, "TrebuchetRefusals",
                    "the limit '\(limit)' of single clients refuses \(Self.whole(refused / metrics.seconds)) requests per second",
                    do: "look in the log for 'limit reached'")
            }
        }
        for sample in metrics.second.all("trebuchet_requests_refused_total") {
            let status = sample.labels["status"] ?? ""
            let refused = metrics.increase("trebuchet_requests_refused_total") { $0["status"] == status }
            guard ["401", "403", "429"].contains(status) || status.hasPrefix("5"), refused / metrics.seconds > 1 else {
                continue
            }
            add(
                server, .warning, "TrebuchetRequestsRefused",
                "\(Self.whole(refused / metrics.seconds)) connections or requests per second are refused with status \(status)",
                do: "look in the log for 'request rejected'")
        }
        addFindingsOfResources(metrics)
    }

    private mutating func addFindingsOfResources(_ metrics: Metrics) {
        let (buffered, limit) = (
            metrics.value("trebuchet_buffered_bytes"), metrics.value("trebuchet_buffered_limit_bytes")
        )
        if limit > 0, buffered > 0.8 * limit {
            add(
                metrics.server, .critical, "TrebuchetBufferedMemory",
                "buffered memory for clients is at \(Self.whole(buffered / limit * 100)) % of its limit",
                do: "find clients that do not read, or calls that wait: trebuchet inspect connections")
        }
        let resident = metrics.value("process_resident_memory_bytes")
        if limit > 0, resident > 0.85 * 4 * limit {
            add(
                metrics.server, .critical, "TrebuchetMemory",
                "the process uses \(TopMetricsView.bytes(resident)), 85 % of the memory of its machine or container",
                do: "deactivate idle actors sooner, or raise the memory")
        }
        if let most = metrics.second.value("process_max_fds"), metrics.value("process_open_fds") > 0.8 * most {
            add(
                metrics.server, .critical, "TrebuchetDescriptors",
                "\(Self.whole(metrics.value("process_open_fds"))) of \(Self.whole(most)) file descriptors are open",
                do: "raise LimitNOFILE= of the service")
        }
    }

    private mutating func addFindingsOfCalls(_ metrics: Metrics) {
        let server = metrics.server
        let internalErrors = metrics.increase("trebuchet_errors_total") { $0["code"] == "internal" }
        if internalErrors > 0 {
            add(
                server, .warning, "TrebuchetInternalErrors",
                "\(Self.whole(internalErrors).counted("call")) failed with 'internal' in the last \(Self.time(metrics.seconds))",
                do:
                    "look in the log for lines that begin with 'error', and roll a deployment back that began just before"
            )
        }
        if let slow = metrics.quantile(0.99, of: "trebuchet_call_duration_seconds"), slow > 1 {
            add(
                server, .warning, "TrebuchetSlowCalls", "1 % of the calls take up to \(Self.time(slow))",
                do: "trebuchet top shows the methods and their times")
        }
        let waiting = metrics.value("trebuchet_calls_waiting")
        if waiting > 100 {
            add(
                server, .warning, "TrebuchetCallsWaiting", "\(Self.whole(waiting)) calls wait for actors to be loaded",
                do: "look in the log for 'slow activation'")
        }
        let alarms = metrics.increase("trebuchet_alarms_failed_total")
        if alarms > 0 {
            add(
                server, .warning, "TrebuchetAlarmsFail",
                "\(Self.whole(alarms).counted("attempt")) to deliver an alarm failed",
                do: "correct the method that the log names, before the tenth attempt")
        }
    }

    private mutating func addFindingsOfNode(_ metrics: Metrics) {
        guard let slots = metrics.second.value("trebuchet_cluster_slots") else { return }
        if metrics.value("trebuchet_cluster_engine_up") == 0 {
            // Readiness has the reason.
            guard !findings.contains(where: { $0.server == metrics.server && $0.alert == "TrebuchetEngineDown" }) else {
                return
            }
            add(
                metrics.server, .critical, "TrebuchetEngineDown", "the node does not reach the coordination store",
                do: "bring the coordination store back with its data, or repair the network to it")
        } else if slots == 0 {
            add(
                metrics.server, .critical, "TrebuchetNoSlots", "the node owns no slots",
                do: "look in its log for 'cannot serve'; give each node a unique name")
        }
    }

    // MARK: The nodes of a cluster

    private mutating func addFindingsOfCluster(_ examinations: [Examination]) {
        let versions = Set(examinations.compactMap(\.version))
        if versions.count > 1, let last = examinations.last {
            add(
                last.server, .note, "TrebuchetRestarts",
                "the servers have different versions: \(versions.sorted().joined(separator: ", "))",
                do: "complete the update, or roll it back")
        }
        let nodes = examinations.compactMap { examination in
            examination.second.flatMap { scrape in
                scrape.page.value("trebuchet_cluster_nodes").map { (examination.server, $0, scrape.page) }
            }
        }
        guard let node = nodes.first else { return }
        let seen = nodes.map(\.1)
        let missing = examinations.count - nodes.count
        if seen.contains(where: { $0 != seen[0] }) {
            add(
                node.0, .warning, "TrebuchetNodesDisagree",
                "the nodes see different numbers of live nodes: \(seen.map { "\(Self.whole($0))" }.joined(separator: ", "))",
                do: "compare the logs of the nodes; repair the network to the coordination store")
        } else if examinations.count > 1, Self.whole(seen[0]) < examinations.count {
            add(
                node.0, .warning, "TrebuchetNodesDisagree",
                "\(Self.whole(seen[0])) of the \(examinations.count) examined servers are live nodes"
                    + (missing > 0 ? "; \(missing) did not respond as a node" : ""),
                do: "start the missing nodes; trebuchet cluster status lists the live ones")
        } else if Self.whole(seen[0]) > nodes.count {
            add(
                node.0, .note, "TrebuchetNodesDisagree",
                "\(nodes.count) of \(Self.whole(seen[0])) live nodes were examined",
                do: "pass the admin endpoints of all nodes")
        } else {
            let slots = nodes.map { $0.2.value("trebuchet_cluster_slots") ?? 0 }.reduce(0, +)
            guard slots < 1_024 else { return }
            add(
                node.0, .warning, "TrebuchetSlotsWithoutOwner", "\(Self.whole(slots)) of 1,024 slots have an owner",
                do: "repeat the command; leases of ended nodes last up to 5 s")
        }
    }

    /// Returns a whole number; the largest one for values that are not in its range.
    private static func whole(_ number: Double) -> Int { Int(exactly: number.rounded(.towardZero)) ?? .max }

    /// Formats a duration in seconds.
    private static func time(_ seconds: Double) -> String {
        seconds.isFinite ? TopMetricsView.time(seconds) : "more than 10 s"
    }
}

extension Examination {
    /// The version of the server; nil without a response or from an older one.
    var version: String? { second?.page.all("trebuchet_build_info").first?.labels["version"] }
}
