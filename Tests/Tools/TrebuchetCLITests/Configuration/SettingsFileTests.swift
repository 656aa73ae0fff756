import Commands
import Testing

@testable import TrebuchetCLI

/// The keys and values of a configuration file of `serve`.
@Suite struct SettingsFileTests {
    private static func file(_ text: String) -> SettingsFile {
        SettingsFile(Array(text.utf8), path: "a.toml", options: ServeOptions.all)
    }

    @Test(
        "a value is that of the option on the command line",
        arguments: [
            (#"host = "::""#, "::"), ("port = 9090", "9090"), ("port = 0", "0"), ("compression = true", ""),
            ("compression = false", nil), ("trace-sample = 0.25", "0.25"), ("trace-sample = 1", "1"),
            (#"origins = ["https://a.b", "https://c.d"]"#, "https://a.b,https://c.d"),
            (#"origins = "https://a.b,https://c.d""#, "https://a.b,https://c.d"), (#"origins = ["*"]"#, "*"),
            (#"services = ["auth", "rooms"]"#, "auth,rooms"), (#"services = "none""#, "none"),
            ("inspector = true", ""), ("inspector = false", nil), ("inspector = 9000", "9000"),
            (#"inspector = "127.0.0.1:9000""#, "127.0.0.1:9000"), (#"log-level = "debug""#, "debug"),
            (#"cluster = "redis://host:6379/0""#, "redis://host:6379/0"),
            (#""drain-timeout" = 2.5"#, "2.5"), (#"mail-command = 'sendmail -t'"#, "sendmail -t"),
        ] as [(String, String?)])
    func values(text: String, value: String?) throws {
        let file = Self.file("\n" + text)
        #expect(file.problems.isEmpty, "\(file.problems)")
        let setting = try #require(file.settings.first)
        #expect(setting.value == value)
        #expect(setting.origin == .file(path: "a.toml", line: 2))
        #expect(text.contains(setting.name.dropFirst(2)))
    }

    @Test(
        "an unsuitable key or value is a problem",
        arguments: [
            ("prot = 1", "1:1: unknown key 'prot'; did you mean 'port'?"),
            ("admin_token_file = 'x'", "1:1: unknown key 'admin_token_file'; did you mean 'admin-token-file'?"),
            ("--port = 1", "1:1: unknown key '--port'; did you mean 'port'?"), ("Port = 1", "did you mean 'port'?"),
            ("zzzzzzzzzz = 1", "1:1: unknown key 'zzzzzzzzzz'"),
            (
                "admin-token = 'x'",
                "1:1: a secret is not allowed in the file: use 'admin-token-file' or the variable TREBUCHET_ADMIN_TOKEN"
            ),
            ("smtp-password = 'x'", "use 'smtp-password-file' or the variable TREBUCHET_SMTP_PASSWORD"),
            ("inspector-token = 'x'", "use 'inspector-token-file' or the variable TREBUCHET_INSPECTOR_TOKEN"),
            ("cluster = 'redis://:secret@host'", "1:11: a secret is not allowed in the file: set TREBUCHET_CLUSTER"),
            ("otlp = 'https://host/?key=secret'", "1:8: a secret is not allowed in the file: set TREBUCHET_OTLP"),
            ("config = 'b.toml'", "1:1: config is not allowed in the file: use --config"),
            ("port = 70000", "1:8: port must be a number between 0 and 65535, not '70000'"),
            ("port = '8080'", "1:8: port must be a whole number, without quotation marks"),
            ("port = 80.5", "port must be a whole number"), ("trace-sample = 2", "between 0.0 and 1.0, not '2'"),
            ("trace-sample = '1'", "trace-sample must be a number, without quotation marks"),
            ("compression = 1", "1:15: compression must be true or false"),
            ("compression = 'true'", "compression must be true or false"),
            ("node = 1", "node must be a string, in quotation marks"), ("node = ['a']", "node must be a string"),
            ("node = ''", "node must not be empty; omit the key instead"),
            (#"data = "a\u0000b""#, "data must not contain a NUL character"),
            ("origins = [1]", #"origins must be a list of strings, such as ["a", "b"]"#),
            ("origins = true", "origins must be a list of strings"), ("origins = []", "origins must not be empty"),
            ("origins = ['https://a.b,https://c.d']", "a value in the list must not be empty, and not contain a comma"),
            ("origins = ['a.b']", "1:11: origins: 'a.b' is not an origin"),
            ("trusted-proxies = ['localhost']", "trusted-proxies: 'localhost'"),
            ("services = ['auht']", "services: unknown service 'auht'; did you mean 'auth'?"),
            ("log-level = 'loud'", "log-level: 'loud' is not one of trace, debug, info, notice, warning, error"),
            ("log-format = 'xml'", "log-format: 'xml' is not 'text' or 'json'"),
            ("after-data-loss = 'x'", "after-data-loss: 'x' is not 'end' or 'continue'"),
            ("admin = '127.0.0.1'", "admin: '127.0.0.1' is not HOST:PORT"),
            ("node-address = 'x'", "node-address: 'x' is not HOST:PORT"), ("otlp = 'x'", "otlp: 'x' is not an http"),
            ("cluster = 'http://x'", "cluster: invalid address of a Redis server"),
            ("smtp = ':25'", "smtp :25: not HOST or HOST:PORT"), ("mail-from = 'x'", "mail-from x: not a mail address"),
            ("inspector = 'x'", "inspector must be a number between 0 and 65535"),
            ("inspector = 1.5", "inspector must be a string, a whole number, true or false"),
            ("[admin]\nport = 1", "1:1: tables are not supported"),
        ])
    func problems(text: String, problem: String) {
        let file = Self.file(text)
        #expect(file.settings.isEmpty && file.problems.count == 1, "\(file)")
        let found = file.problems.first?.description ?? ""
        #expect(found.hasPrefix("a.toml:1:") && found.contains(problem), "\(found)")
        #expect(!found.contains("secret@") && !found.contains("key="))
    }

    @Test("all problems of a file are found, in the order of their places")
    func all() {
        let file = Self.file("port = 1\nprot = 2\nhost = here\nport = 3\nreactors = 0\ndata = 'a.db'\n[x]\n")
        #expect(file.settings.map(\.name) == ["--port", "--data"])
        #expect(file.problems.map(\.position.line) == [2, 3, 4, 5, 7])
    }

    @Test("a setting that requires another option outside of the file causes a warning")
    func incomplete() {
        let file = Self.file("standby = true\nbench-callers = false\nsmtp-user = 'a'\nsmtp = 'h'\nnode = 'one'\n")
        #expect(file.problems.isEmpty)
        #expect(
            file.incompleteSettings(of: ServeOptions.all).map(\.description) == [
                "a.toml:1:1: standby requires --data, which the command line or the environment must have",
                "a.toml:5:1: node requires --cluster, which the command line or the environment must have",
            ])
    }

    @Test("each option has its own key and variable, and none is a variable with a secret")
    func names() {
        let options = ServeOptions.all
        #expect(options.count > 50)
        #expect(Set(options.map(\.key)).count == options.count && options.allSatisfy { $0.name == "--" + $0.key })
        let variables = options.map(\.variable) + options.compactMap(\.secretVariable)
        #expect(Set(variables).count == variables.count)
        #expect(Set(variables).isDisjoint(with: ["TREBUCHET_TOKEN", "TREBUCHET_MAIL_TO", "TREBUCHET_MAIL_CODE"]))
        for option in options {
            if let requirement = option.requirement { #expect(options.contains { $0.name == requirement }) }
            if option.secretVariable != nil { #expect(option.name.hasSuffix("-file")) }
        }
        #expect(options.first { $0.key == "admin-tls-cert" }?.variable == "TREBUCHET_ADMIN_TLS_CERT")
    }
}
