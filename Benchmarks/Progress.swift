import Commands

/// Prints one line per second to standard error while a benchmark runs in a terminal.
enum Progress {
    /// Waits for `seconds` and reports the growth of the count.
    static func run(seconds: Double, _ count: () -> Int) async throws {
        var left = seconds
        var last = count()
        while left > 0 {
            let step = min(left, 1)
            try await Task.sleep(for: .seconds(step))
            left -= step
            let now = count()
            printLine("\(Int((seconds - left).rounded())) s: \(Int(Double(now - last) / step))/s")
            last = now
        }
    }

    static func printLine(_ line: String) { if Console.isWatched { Console.error(line) } }
}
