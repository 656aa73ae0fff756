import Commands
import TrebuchetServices

/// The environment variables that set options of `serve`: `TREBUCHET_ADMIN_TLS_CERT` for `--admin-tls-cert`.
enum OptionVariables {
    /// Returns the settings in an environment. An empty variable counts as missing.
    static func settings(
        in environment: [String: String], of options: [OptionSpec]
    ) throws(UsageError) -> [OptionSetting] {
        var settings: [OptionSetting] = []
        for option in options {
            let name = option.variable
            guard let text = environment[name], !text.isEmpty, !isOfKubernetes(name, text) else { continue }
            settings.append(OptionSetting(option.name, try value(text, of: option), from: .variable(name)))
        }
        return settings
    }

    private static func value(_ text: String, of option: OptionSpec) throws(UsageError) -> String? {
        guard option.isFlag || option.hasOptionalValue else { return text }
        switch text {
        case "true": return ""
        case "false": return nil
        default:
            guard !option.isFlag else { throw UsageError("\(option.variable) must be true or false, not '\(text)'") }
            return text
        }
    }

    /// Returns a warning for each variable whose name is probably a mistyped one of an option.
    static func warnings(about environment: [String: String], options: [OptionSpec]) -> [String] {
        let prefix = "TREBUCHET_"
        let known = Set(options.map(\.variable) + options.compactMap(\.secretVariable))
        return environment.keys.sorted().compactMap { name in
            guard name.hasPrefix(prefix), !known.contains(name), !isOfKubernetes(name, environment[name] ?? ""),
                let match = NearestMatch.find(
                    String(name.dropFirst(prefix.count)), in: known.sorted().map { String($0.dropFirst(prefix.count)) })
            else { return nil }
            return "'\(name)' is not a variable of serve; did you mean \(prefix + match)?"
        }
    }

    /// Kubernetes sets `TREBUCHET_PORT=tcp://10.0.0.1:8080`, `TREBUCHET_SERVICE_HOST` and others in all containers beside a
    /// service with the name `trebuchet`.
    private static func isOfKubernetes(_ name: String, _ value: String) -> Bool {
        name == "TREBUCHET_PORT" && value.contains("://")
            || ["TREBUCHET_PORT_", "TREBUCHET_SERVICE_"].contains { name.hasPrefix($0) }
    }
}
