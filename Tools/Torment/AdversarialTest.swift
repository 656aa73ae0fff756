@preconcurrency import Glibc

import struct Foundation.Data
import class Foundation.FileHandle

/// `scripts/stress torment`: hostile clients against a server, with honest ones beside them.
@main
enum AdversarialTest {
    static func main() async {
        setvbuf(stdout, nil, _IOLBF, 0)
        signal(SIGPIPE, SIG_IGN)
        // Shows a crash at once, without the system's own report.
        setenv("SWIFT_BACKTRACE", "enable=no", 0)
        setenv("ASAN_OPTIONS", "detect_leaks=0:quarantine_size_mb=16:handle_segv=1", 0)
        // A run takes long, and its output file must show the progress.
        setvbuf(stdout, nil, _IOLBF, 0)
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.contains("--help") || arguments.contains("-h") { return print(Options.help) }
        let options: Options
        do {
            options = try Options(arguments)
        } catch {
            FileHandle.standardError.write(Data("Torment: \(error)\n\n\(Options.help)\n".utf8))
            exit(2)
        }
        do {
            exit(try await run(options) ? 0 : 1)
        } catch {
            FileHandle.standardError.write(Data("Torment: \(error)\n".utf8))
            exit(1)
        }
    }

    /// True without findings.
    private static func run(_ options: Options) async throws -> Bool {
        guard let schedule = options.replay else { return try await AdversarialClient(options).run() }
        print("replaying \(schedule.scenarios.count) scenario(s), \(options.repeats) times")
        let finding = try await TestEnvironment.run(schedule, repeats: options.repeats, options)
        guard let finding else {
            print("nothing found")
            return true
        }
        print("found: \(finding)")
        return false
    }
}
