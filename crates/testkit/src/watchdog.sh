# Reads commands until the test process ends and its end of the pipe closes. Then ends the processes that are still
# registered, by their ids, and removes the folders.
#   run PID SIGNAL   ended PID   folder PATH
trap '' INT TERM HUP
running= folders=
newline='
'
while read -r order value signal; do
    case $order in
    run) running="$running $value:$signal" ;;
    ended)
        rest=
        for entry in $running; do
            [ "${entry%%:*}" = "$value" ] || rest="$rest $entry"
        done
        running=$rest
        ;;
    folder) folders="$folders$value$newline" ;;
    esac
done

is_alive() {
    kill -0 "$1" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

for entry in $running; do
    kill -s "${entry##*:}" "${entry%%:*}" 2>/dev/null
done
for entry in $running; do
    tries=0
    while is_alive "${entry%%:*}"; do
        tries=$((tries + 1))
        [ $tries -eq 100 ] && kill -s KILL "${entry%%:*}" 2>/dev/null
        [ $tries -gt 200 ] && break
        sleep 0.05
    done
done

IFS=$newline
for folder in $folders; do
    tries=0
    until rm -rf -- "$folder" 2>/dev/null || [ $tries -gt 50 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
done
