import Commands
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import TrebuchetCLI

/// The options of `serve` from the command line, the environment and a file.
@Suite struct ServeConfigurationTests {
    private final class File {
        let path = NSTemporaryDirectory() + "trebuchet-\(UUID()).toml"

        init(_ text: String) throws { try write(text) }
        deinit { unlink(path) }

        func write(_ text: String) throws { try text.write(toFile: path, atomically: true, encoding: .utf8) }
    }

    private static func arguments(_ words: [String]) throws -> ParsedArguments {
        try ParsedArguments(words, for: ServeCommand.spec)
    }

    private static func configuration(
        _ words: [String], _ environment: [String: String] = [:]
    ) throws -> ServeConfiguration {
        try ServeConfiguration(arguments(words), environment: environment)
    }

    @Test(
        "the command line comes before the environment, and the environment before the file",
        arguments: [
            // Command line, environment, file; option, value, origin (`FILE` is the file).
            ([], [:], "", "--port", nil, nil), ([], [:], "port = 3", "--port", "3", "FILE:1"),
            ([], ["TREBUCHET_PORT": "2"], "port = 3", "--port", "2", "TREBUCHET_PORT"),
            (["--port", "1"], ["TREBUCHET_PORT": "2"], "port = 3", "--port", "1", "command line"),
            ([], ["TREBUCHET_PORT": ""], "port = 3", "--port", "3", "FILE:1"),
            // Kubernetes sets it beside a service with the name trebuchet.
            ([], ["TREBUCHET_PORT": "tcp://10.0.0.1:80"], "port = 3", "--port", "3", "FILE:1"),
            ([], [:], "\ncompression = true", "--compression", "", "FILE:2"),
            (
                [], ["TREBUCHET_COMPRESSION": "false"], "compression = true", "--compression", nil,
                "TREBUCHET_COMPRESSION"
            ),
            (["--compression=false"], [:], "compression = true", "--compression", nil, "command line"),
            (["--compression"], ["TREBUCHET_COMPRESSION": "false"], "", "--compression", "", "command line"),
            (["--compression=false", "--compression"], [:], "", "--compression", "", "command line"),
            ([], ["TREBUCHET_INSPECTOR": "true"], "", "--inspector", "", "TREBUCHET_INSPECTOR"),
            ([], ["TREBUCHET_INSPECTOR": "9000"], "inspector = false", "--inspector", "9000", "TREBUCHET_INSPECTOR"),
            (["--inspector=false"], [:], "inspector = true", "--inspector", nil, "command line"),
            (["--inspector=true"], [:], "inspector = 80", "--inspector", "", "command line"),
            ([], ["TREBUCHET_ORIGINS": "http://a,http://b"], "", "--origins", "http://a,http://b", "TREBUCHET_ORIGINS"),
            // A secret in the environment comes before its file in the configuration file, not before its option.
            (
                ["--admin", "127.0.0.1:0"], ["TREBUCHET_ADMIN_TOKEN": "x"], "admin-token-file = 't'",
                "--admin-token-file", nil, nil
            ),
            (
                ["--admin", "127.0.0.1:0", "--admin-token-file", "u"], ["TREBUCHET_ADMIN_TOKEN": "x"],
                "admin-token-file = 't'", "--admin-token-file", "u", "command line"
            ),
        ] as [([String], [String: String], String, String, String?, String?)])
    func precedence(
        words: [String], environment: [String: String], text: String, option: String, value: String?, origin: String?
    ) throws {
        let file = try File(text)
        for (words, environment) in [
            (words + ["--config", file.path], environment),
            (words, environment.merging(["TREBUCHET_CONFIG": file.path]) { $1 }),
        ] {
            let found = try Self.configuration(words, environment).arguments
            #expect(found.string(option) == value)
            #expect(
                found.origin(of: option)?.description.replacingOccurrences(of: file.path, with: "FILE") == origin)
        }
    }

    @Test(
        "an error names the origin of the option",
        arguments: [
            (["--port", "x"], [:], "--port must be a number between 0 and 65535, not 'x'"),
            (
                [], ["TREBUCHET_PORT": "x"],
                "--port must be a number between 0 and 65535, not 'x' (--port comes from TREBUCHET_PORT)"
            ),
            ([], ["TREBUCHET_COMPRESSION": "on"], "TREBUCHET_COMPRESSION must be true or false, not 'on'"),
            ([], ["TREBUCHET_STANDBY": "true"], "--standby requires --data (--standby comes from TREBUCHET_STANDBY)"),
            (
                [], ["TREBUCHET_CONFIG": "/no/such"],
                "--config /no/such: No such file or directory (--config comes from TREBUCHET_CONFIG)"
            ),
            (["--config", "/"], [:], "--config /: not a regular file"),
            (["--tls-client-ca", "x"], [:], "--tls-client-ca requires --tls-cert"),
        ] as [([String], [String: String], String)])
    func errors(words: [String], environment: [String: String], text: String) {
        let error = #expect(throws: UsageError.self) { _ = try Self.configuration(words, environment) }
        #expect(error?.description == text)
    }

    @Test("a file with problems is an error with all of them, and a file over 1 MiB is refused")
    func badFile() throws {
        let file = try File("prot = 1\nport = x\n")
        let error = #expect(throws: SettingsFileError.self) { _ = try Self.configuration(["--config", file.path]) }
        #expect(error?.problems.count == 2)
        #expect(error?.description.hasPrefix("\(file.path):1:1: unknown key 'prot'") == true)
        let line = "# 0123456789abcde\n"
        try file.write(String(repeating: line, count: SettingsFile.maximumBytes / line.utf8.count))
        _ = try Self.configuration(["--config", file.path])
        try file.write(String(repeating: line, count: SettingsFile.maximumBytes / line.utf8.count + 1))
        let large = #expect(throws: UsageError.self) { _ = try Self.configuration(["--config", file.path]) }
        #expect(large?.description.hasSuffix("the file is larger than 1048576 bytes") == true)
    }

    @Test("a mistyped variable causes a warning; other variables of the project and of Kubernetes do not")
    func warnings() throws {
        let environment = [
            "TREBUCHET_ADMN": "x", "TREBUCHET_TOKEN": "x", "TREBUCHET_TESTS": "x", "TREBUCHET_ADMIN_TOKEN": "x",
            "TREBUCHET_SERVICE_HOST": "x", "TREBUCHET_PORT_8080_TCP_PORT": "x", "TREBUCHET_PORT": "tcp://a:1",
            "TREBUCHET_STRICT": "1", "TREBUCHET_MAIL_TO": "x", "OTHER": "x",
        ]
        #expect(
            try Self.configuration([], environment).warnings
                == ["'TREBUCHET_ADMN' is not a variable of serve; did you mean TREBUCHET_ADMIN?"])
    }

    @Test("config show has the value and the origin of each option, without secrets")
    func table() throws {
        let file = try File("port = 9090\ncompression = true\nadmin-token-file = 't'\n")
        let environment = [
            "TREBUCHET_CLUSTER": "redis://user:pass%40word@host:6379", "TREBUCHET_NODE": "one",
            "TREBUCHET_ADMIN": "127.0.0.1:0", "TREBUCHET_ADMIN_TOKEN": "a-secret-token",
            "TREBUCHET_OTLP": "https://c/v1?key=a-secret-key", "TREBUCHET_INSPECTOR": "false",
        ]
        let arguments = try Self.configuration(["--config", file.path], environment).arguments
        let lines = ConfigCommand.lines(of: arguments, environment)
        #expect(lines.count == ServeOptions.all.count + 2)
        func cells(_ key: String) -> [String] {
            let line = lines.first { $0.hasPrefix(key + " ") } ?? ""
            return line.split(separator: /[ ]{2,}/).dropFirst().map { String($0) }
        }
        #expect(cells("option") == ["value", "origin"])
        #expect(cells("config").last == "command line")
        #expect(cells("host") == ["127.0.0.1", "default"])
        #expect(cells("port") == ["9090", "\(file.path):1"])
        #expect(cells("compression") == ["true", "\(file.path):2"])
        #expect(cells("examples") == ["false", "default"] && cells("tls-cert") == ["-", "default"])
        #expect(cells("inspector") == ["false", "TREBUCHET_INSPECTOR"])
        #expect(cells("cluster") == ["redis://user:********@host:6379", "TREBUCHET_CLUSTER"])
        #expect(cells("otlp") == ["https://c/v1?********", "TREBUCHET_OTLP"])
        #expect(cells("admin-token-file") == ["no token", "default"])
        #expect(cells("admin-token") == ["********", "TREBUCHET_ADMIN_TOKEN"])
        let text = lines.joined()
        for secret in ["pass%40", "a-secret"] { #expect(!text.contains(secret)) }
    }

    @Test(
        "the password of a URL is masked",
        arguments: [
            ("redis://h", "redis://h"), ("redis://u@h", "redis://u@h"), ("redis://u:@h", "redis://u:@h"),
            ("redis://:p@h/0", "redis://:********@h/0"),
            ("redis+sentinel://u:p:q@h,i/n", "redis+sentinel://u:********@h,i/n"),
            ("redis://u:p@q@h", "redis://u:********@h"), ("a:b@c", "a:b@c"), ("://@", "://@"), ("", ""),
        ])
    func mask(url: String, masked: String) {
        #expect(ClusterCommand.masked(url) == masked)
    }

    /// Lines of a log, and values that actions have applied.
    private final class Journal: Sendable {
        private let entries = Mutex<[String]>([])

        func append(_ entry: String) { entries.withLock { $0.append(entry) } }
        func removeAll() -> [String] {
            entries.withLock { entries in
                defer { entries = [] }
                return entries
            }
        }
    }

    @Test("a reload applies settings with an action, reports the others until a restart, and keeps all after an error")
    func reload() throws {
        struct Refused: Error, CustomStringConvertible { let description = "refused" }
        let file = try File("port = 1\n")
        let path = file.path
        let commandLine = try Self.arguments(["--config", path, "--otlp", "http://c"])
        let journal = Journal()
        let reload = ServeReload(
            try ServeConfiguration(commandLine, environment: [:]).arguments,
            actions: [
                "--trace-sample": { new in
                    let value = new.effective("--trace-sample") ?? ""
                    guard value != "0.9" else { throw Refused() }
                    journal.append("apply \(value)")
                }
            ]
        ) {
            try ServeConfiguration(commandLine, environment: [:]).arguments
        } log: {
            journal.append("\($0): \($1.replacingOccurrences(of: path, with: "FILE"))")
        }
        for (text, changed, lines) in [
            ("port = 1\n", false, ["notice: configuration reloaded: no setting has changed"]),
            (
                "port = 2\ntrace-sample = 0.5\ncompression = true\nhost = 'x'\n", true,
                [
                    "notice: configuration: host changed from 127.0.0.1 to x (FILE:4), which takes effect after a restart",
                    "notice: configuration: port changed from 1 to 2 (FILE:1), which takes effect after a restart",
                    "notice: configuration: compression changed from false to true (FILE:3), which takes effect after a restart",
                    "apply 0.5",
                    "notice: configuration: trace-sample changed from 0.01 to 0.5 (FILE:2), which takes effect now",
                ]
            ),
            // The applied setting is the active one, the others still differ.
            (
                "port = 2\ntrace-sample = 0.5\n", false,
                ["notice: configuration: port changed from 1 to 2 (FILE:1), which takes effect after a restart"]
            ),
            (
                "port = x\ncompresion = true\n", false,
                [
                    "error: configuration not reloaded; the current one stays active: FILE:1:8: 'x' is not a value: "
                        + "write strings in quotation marks, decimal numbers, true or false",
                    "error: configuration not reloaded; the current one stays active: FILE:2:1: unknown key "
                        + "'compresion'; did you mean 'compression'?",
                ]
            ),
            (
                "port = 1\nstandby = true\n", false,
                [
                    "error: configuration not reloaded; the current one stays active: --standby requires --data "
                        + "(--standby comes from FILE:2)"
                ]
            ),
            (
                "port = 1\ntrace-sample = 0.9\n", true,
                ["error: trace-sample not changed; the current value stays active: refused"]
            ),
            (
                "port = 1\n", true,
                [
                    "apply 0.01",
                    "notice: configuration: trace-sample changed from 0.5 to 0.01, which takes effect now",
                ]
            ),
        ] as [(String, Bool, [String])] {
            try file.write(text)
            #expect(reload.run() == (changed ? ["--trace-sample"] : []), "\(text)")
            #expect(journal.removeAll() == lines)
        }
        unlink(path)
        #expect(reload.run() == [])
        #expect(
            journal.removeAll() == [
                "error: configuration not reloaded; the current one stays active: --config FILE: No such file or directory"
            ])
        // Only an option that is set has an action to repeat.
        reload.repeatAction("--trace-sample")
        #expect(journal.removeAll() == [])
    }
}
