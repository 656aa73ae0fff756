import Commands
import Foundation
import Synchronization
import Trebuchet

/// The options of `serve` with their values from the command line, else from the environment, else from the file of `--config`.
struct ServeConfiguration {
    let arguments: ParsedArguments
    let warnings: [String]

    /// Throws `UsageError`, or `SettingsFileError` with all problems of the file.
    init(
        _ commandLine: ParsedArguments, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws {
        let options = ServeOptions.all
        warnings = OptionVariables.warnings(about: environment, options: options)
        var arguments = commandLine
        for setting in try OptionVariables.settings(in: environment, of: options) { arguments.add(setting) }
        if let path = arguments.string(ServeOptions.file.name) {
            let file: SettingsFile
            do throws(UsageError) {
                file = try SettingsFile(contentsOfFile: path, of: ServeOptions.file.name, options: options)
            } catch {
                throw arguments.withOrigin(error)
            }
            guard file.problems.isEmpty else { throw SettingsFileError(problems: file.problems) }
            // A secret in the environment comes before the file of a secret that the configuration file names.
            let present = options.filter { Self.secretVariable(of: $0, in: environment) != nil }.map(\.name)
            for setting in file.settings where !present.contains(setting.name) { arguments.add(setting) }
        }
        do throws(UsageError) {
            try arguments.validate()
        } catch {
            throw arguments.withOrigin(error)
        }
        self.arguments = arguments
    }

    /// Returns the variable with the secret of an option, if the environment has it.
    static func secretVariable(of option: OptionSpec, in environment: [String: String]) -> String? {
        guard let name = option.secretVariable, environment[name]?.isEmpty == false else { return nil }
        return name
    }
}

/// Reads the configuration file of a running `serve` again, and applies those changes that need no restart.
final class ServeReload: Sendable {
    /// Applies the new value of an option to the server. After an error the previous value stays active.
    typealias Action = @Sendable (_ new: ParsedArguments) throws -> Void

    private let actions: [String: Action]
    private let read: @Sendable () throws -> ParsedArguments
    private let log: @Sendable (ServerEvent.Level, String) -> Void
    /// The values that are in effect.
    private let active: Mutex<ParsedArguments>

    /// - Parameters:
    ///   - arguments: the values at the start of the server.
    ///   - actions: by name of the option; all other options take effect after a restart.
    init(
        _ arguments: ParsedArguments, actions: [String: Action], read: @escaping @Sendable () throws -> ParsedArguments,
        log: @escaping @Sendable (ServerEvent.Level, String) -> Void
    ) {
        active = Mutex(arguments)
        self.actions = actions
        self.read = read
        self.log = log
    }

    /// Reads the file, logs each setting that differs from the active one, and returns the names of those for which an action
    /// has run. Without a file it does nothing.
    func run() -> Set<String> {
        let old = active.withLock { $0 }
        guard old.has(ServeOptions.file.name) else { return [] }
        let new: ParsedArguments
        do {
            new = try read()
        } catch {
            logError("configuration not reloaded; the current one stays active", error)
            return []
        }
        let changed = ServeOptions.all.filter { old.string($0.name) != new.string($0.name) }
        if changed.isEmpty { log(.notice, "configuration reloaded: no setting has changed") }
        var names: Set<String> = []
        for option in changed {
            let origin = new.origin(of: option.name).map { " (\($0))" } ?? ""
            let change = "\(option.key) changed from \(old.shown(option)) to \(new.shown(option))\(origin)"
            guard let action = actions[option.name] else {
                log(.notice, "configuration: \(change), which takes effect after a restart")
                continue
            }
            names.insert(option.name)
            do {
                try action(new)
                active.withLock { $0.copy(option.name, from: new) }
                log(.notice, "configuration: \(change), which takes effect now")
            } catch {
                logError("\(option.key) not changed; the current value stays active", error)
            }
        }
        return names
    }

    /// Runs the action of an option that is set, with its active value, as the file that it names may have changed.
    func repeatAction(_ name: String) {
        let active = active.withLock { $0 }
        guard active.has(name), let action = actions[name] else { return }
        do {
            try action(active)
        } catch {
            logError("\(name.dropFirst(2)) not reloaded; the current ones stay active", error)
        }
    }

    private func logError(_ text: String, _ error: any Error) {
        for problem in ErrorHint.problems(of: error) ?? ["\(error)"] { log(.error, "\(text): \(problem)") }
    }
}
