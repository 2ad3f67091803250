IFS= read -r version || exit 9;
file=$HOME/.cache/loadline/$version/loadline;
sum=; if [ -r "$file" ]; then sum=$(sha256sum < "$file" 2>/dev/null); fi;
echo "loadline-host $(uname -s) $(uname -m) ${sum%% *}";
IFS= read -r size || exit 9;
IFS= read -r want || exit 9;
if [ "$size" != 0 ]; then
part=$file.$$;
if mkdir -p "${file%/*}" && head -c "$size" > "$part" && [ "$(wc -c < "$part")" -eq "$size" ] && chmod 755 "$part"; then
got=$(sha256sum < "$part" 2>/dev/null); got=${got%% *};
if [ "${got:-$want}" = "$want" ] && mv -f "$part" "$file"; then echo loadline-copied; else rm -f "$part"; echo loadline-not-copied; exit 9; fi;
else rm -f "$part"; echo loadline-not-copied; exit 9; fi;
fi;
IFS= read -r name || exit 9;
IFS= read -r program || exit 9;
IFS= read -r LOADLINE_HUB || exit 9;
IFS= read -r LOADLINE_HUB_NKEY || exit 9;
IFS= read -r creds || exit 9;
IFS= read -r ca || exit 9;
LOADLINE_HUB_CREDS=$(printf "%s" "$creds" | tr "\036" "\n");
LOADLINE_HUB_CA=$(printf "%s" "$ca" | tr "\036" "\n");
export LOADLINE_HUB LOADLINE_HUB_NKEY LOADLINE_HUB_CREDS LOADLINE_HUB_CA;
case "$program" in "") program=$file;; "~/"*) program=$HOME/${program#??};; esac;
if command -v "$program" >/dev/null 2>&1; then :; else echo loadline-missing; exit 9; fi;
exec 3<&0;
"$program" agent --name "$name" </dev/null 3<&- &
agent=$!;
( while IFS= read -r line <&3; do :; done; kill "$agent"; sleep 5; kill -9 "$agent" ) >/dev/null 2>&1 &
watch=$!;
exec 3<&- </dev/null;
trap "kill $agent" HUP INT TERM;
echo "loadline-started $agent";
wait "$agent"; code=$?;
kill "$watch" 2>/dev/null;
printf "\nloadline-ended %s\n" "$code";
exit "$code"
