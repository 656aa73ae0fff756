import Commands
import Glibc
import Platform
import Trebuchet

/// `trebuchet top`: shows an overview of a server, updated each second.
enum TopCommand {
    static let spec = CommandSpec(
        name: "top",
        summary: "show an overview of a server with --inspector, refreshed every second",
        options: InspectorClient.options + [
            OptionSpec("--interval", "SECONDS", "refresh interval (1)"),
            OptionSpec("--once", nil, "print once, after one interval, and exit"),
        ],
        discussion: """
            Fills the terminal until Control-C, which exits with 0. Without a terminal it prints one overview per interval.
            """,
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        let inspector = try InspectorClient(arguments)
        let pause = Duration.seconds(try arguments.double("--interval", in: 0.1...3_600) ?? 1)
        let isOnce = arguments.has("--once")
        let isScreen = isatty(STDOUT_FILENO) != 0 && !isOnce
        try await UntilSignal.run { end in
            var before = try await inspector.fetchJSON("overview")
            end.serverAnswered()
            let screen = isScreen ? Screen() : nil
            defer { screen?.leave() }
            while true {
                try await Task.sleep(for: pause)
                let now = try await inspector.fetchJSON("overview")
                let lines = TopMetricsView.lines(of: now, since: before)
                before = now
                if let screen { screen.show(lines) } else { Console.print(lines.joined(separator: "\n")) }
                if isOnce { return }
                if screen == nil { Console.print() }
            }
        }
    }

    /// The alternate screen of a terminal; the previous contents reappear afterwards.
    private struct Screen {
        init() { write("\u{1B}[?1049h\u{1B}[?25l") }

        func show(_ lines: [String]) {
            var size = winsize()
            let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 0
            let rows = isKnown ? Int(size.ws_row) : 24
            let columns = isKnown ? Int(size.ws_col) : 80
            let text = lines.prefix(rows).map { $0.prefix(columns) + "\u{1B}[K" }.joined(separator: "\r\n")
            write("\u{1B}[H\(text)\u{1B}[J")
        }

        func leave() { write("\u{1B}[?25h\u{1B}[?1049l") }

        private func write(_ text: String) { Console.print(text, terminator: "") }
    }
}

/// Formats the metrics of a server as text. Pure.
enum TopMetricsView {
    /// - Parameter earlier: the previous overview; with it rates are shown, without it totals.
    static func lines(of now: LenientJSON, since earlier: LenientJSON? = nil) -> [String] {
        let seconds = earlier.map { max(0.001, now["time"].number - $0["time"].number) }
        func rate(_ metric: (LenientJSON) -> Double) -> String {
            guard let earlier, let seconds else { return "\(short(metric(now))) total" }
            return "\(short(max(0, metric(now) - metric(earlier)) / seconds))/s"
        }
        let process = now["process"]
        let busy = zip(now["reactors"].list, earlier?["reactors"].list ?? []).map { new, old in
            max(0, new["busySeconds"].number - old["busySeconds"].number) / (seconds ?? 1)
        }
        let calls = now["calls"]
        var lines = [
            "\(LogLine.of(now["status"].text ?? "?"))\(now["ready"].isTrue ? "" : ", not ready"), up "
                + age(now["time"].number - process["started"].number),
            "connections  \(now["connections"].count), \(rate { $0["connectionsOpened"].number }) new",
            "actors       \(now["actors"].count), \(now["actorsOnDemand"].count) activated on demand; "
                + now["streams"].count.counted("stream"),
            "calls        \(rate { $0["calls"]["answered"].number }); \(calls["active"].count) active, "
                + "\(calls["waiting"].count) waiting; \(latencies(now, since: earlier))",
            "errors       \(rate { errors($0) }); rejected by limits \(rate { refusals($0) })",
            "versions     \(rate { $0["versions"].number }); skipped \(rate { $0["versionsSkipped"].number })",
            "deliveries   \(rate { $0["deliveries"]["patch"].number }) patches, "
                + "\(rate { $0["deliveries"]["whole"].number }) whole, "
                + "\(rate { $0["deliveries"]["event"].number }) events; "
                + "not writable \(rate { $0["subscribersBehind"].number })",
            "buffered     \(bytes(now["bufferedBytes"].number)) of \(bytes(now["bufferedLimitBytes"].number)) for clients",
            "process      \(processor(now, since: earlier, seconds))\(bytes(process["residentBytes"].number)), "
                + "\(process["openFiles"].count.counted("file")), \(process["threads"].count.counted("thread"))",
        ]
        for (index, reactor) in now["reactors"].list.enumerated() {
            lines.append(
                "  \(LogLine.of(reactor["name"].text ?? "")): "
                    + (index < busy.count ? "\(Int((busy[index] * 100).rounded())) % busy, " : "")
                    + "longest turn \(time(reactor["longestTurnSeconds"].number)), \(reactor["stalls"].count) over 100 ms"
            )
        }
        return lines + methods(now, since: earlier, seconds)
    }

    private static func errors(_ shown: LenientJSON) -> Double {
        shown["errors"].names.map { shown["errors"][$0].number }.reduce(0, +)
    }

    private static func refusals(_ shown: LenientJSON) -> Double {
        shown["refusals"].names.map { shown["refusals"][$0].number }.reduce(0, +)
    }

    private static func processor(_ now: LenientJSON, since earlier: LenientJSON?, _ seconds: Double?) -> String {
        guard let earlier, let seconds else { return "" }
        let used = now["process"]["processorSeconds"].number - earlier["process"]["processorSeconds"].number
        return "\(Int((max(0, used) / seconds * 100).rounded())) % of a core, "
    }

    /// Returns the methods with the most calls.
    private static func methods(_ now: LenientJSON, since earlier: LenientJSON?, _ seconds: Double?) -> [String] {
        var before: [String: LenientJSON] = [:]
        for method in earlier?["methods"].list ?? [] { before[name(method)] = method }
        let rows = now["methods"].list.map { method -> (name: String, calls: Double, seconds: Double) in
            let old = before[name(method)]
            return (
                name(method), method["calls"].number - (old?["calls"].number ?? 0),
                method["seconds"].number - (old?["seconds"].number ?? 0)
            )
        }.filter { $0.calls > 0 }.sorted { ($0.calls, $1.name) > ($1.calls, $0.name) }.prefix(10)
        guard !rows.isEmpty else { return [] }
        var table = TextTable(["METHOD", seconds == nil ? "CALLS" : "CALLS/S", "EACH"])
        for row in rows {
            table.addRow([row.name, short(row.calls / (seconds ?? 1)), time(row.seconds / row.calls)])
        }
        return [""] + table.lines
    }

    private static func name(_ method: LenientJSON) -> String {
        "\(method["type"].text ?? "").\(method["method"].text ?? "")"
    }

    /// Returns the 50th and 99th percentiles of call durations, from the histogram.
    private static func latencies(_ now: LenientJSON, since earlier: LenientJSON?) -> String {
        let bounds = now["calls"]["bounds"].list.map(\.number)
        let old = earlier?["calls"]["buckets"].list.map(\.number) ?? []
        let buckets = now["calls"]["buckets"].list.enumerated().map { index, bucket in
            max(0, bucket.number - (index < old.count ? old[index] : 0))
        }
        let all = buckets.reduce(0, +)
        guard all > 0 else { return "no responses" }
        func bound(_ part: Double) -> String {
            var sum = 0.0
            for (index, count) in buckets.enumerated() {
                sum += count
                if sum >= part * all { return index < bounds.count ? "≤ \(time(bounds[index]))" : "> 10 s" }
            }
            return "?"
        }
        return "median \(bound(0.5)), 99 % \(bound(0.99))"
    }

    static func bytes(_ count: Double) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var (rest, unit) = (count, 0)
        while rest >= 1_024, unit < units.count - 1 { (rest, unit) = (rest / 1_024, unit + 1) }
        return "\(short(rest)) \(units[unit])"
    }

    static func time(_ seconds: Double) -> String {
        if seconds < 0.001 { return "\(short(seconds * 1e6)) µs" }
        return seconds < 1 ? "\(short(seconds * 1e3)) ms" : "\(short(seconds)) s"
    }

    private static func age(_ seconds: Double) -> String {
        let whole = Int(max(0, min(seconds, 1e12)))
        if whole < 60 { return "\(whole) s" }
        if whole < 3_600 { return "\(whole / 60) min" }
        return whole < 86_400 ? "\(whole / 3_600) h \(whole / 60 % 60) min" : (whole / 86_400).counted("day")
    }

    /// Formats a number with three significant digits.
    static func short(_ number: Double) -> String {
        guard number.isFinite, abs(number) < 1e15 else { return "?" }
        if number.rounded() == number || abs(number) >= 100 { return "\(Int(number.rounded()))" }
        let parts = abs(number) >= 10 ? 10.0 : 100.0
        let rounded = (number * parts).rounded() / parts
        return rounded.rounded() == rounded ? "\(Int(rounded))" : "\(rounded)"
    }
}
